"""The loop, as a pure function: an event from the world goes in, and out come the state after
it, the events that follow from it by the rules, and the work that is owed.

    step(state, event) -> Step(state, events, effects)

Nothing here waits, runs, asks the time or makes up an id. A driver performs the effects and
feeds the events that come of them back in, and that is the whole loop:

    UserSpoke ──► ModelAsked ─(CallModel)─► ModelReplied ──► a text? RunStopped
                      ▲                          │
                      └──── ToolFinished ◄─(RunTools)── calls? CallsAdmitted

To read it, follow `next_event`: it asks the questions of the loop in their order, and each answer
is an event. Since it looks at the state alone, a process that died after any event goes on where
it was: `recover` closes what was open and asks the same questions.

The laws this keeps are in `docs/explain/the-laws.md`, each with the test that would catch a break.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from holdfast.core import guards, window
from holdfast.core.claims import checked, left_out
from holdfast.core.effects import CallModel, Effect, Request, RunTools, StopWork
from holdfast.core.events import (
    About,
    CallsAdmitted,
    CancelAsked,
    Ending,
    Event,
    Finish,
    FollowedUp,
    ModelAsked,
    Nudged,
    Outcome,
    Purpose,
    Reopened,
    RunStopped,
    Steered,
    Summarised,
    TaskCut,
    TimeRanOut,
    ToolDropped,
    ToolFinished,
    Warned,
    Why,
)
from holdfast.core.fold import evolve
from holdfast.core.guards import Drop, Nudge, Stop, Tell
from holdfast.core.history import OpenCall
from holdfast.core.ledger import report
from holdfast.core.limits import Limits, OnLimit, StopReason
from holdfast.core.messages import AssistantMessage, Note, ToolMessage
from holdfast.core.state import NEW, Run, State, request_size, window_of
from holdfast.core.tools import SideEffect, not_found
from holdfast.core.window import Frame

LONGEST_STEP = 1_000
"""Events that may follow from one: far above what any rule needs, and better than to hang."""
CANCELLED = "operation cancelled by user"
TIME_WAS_UP = "Not run: the time of the run was up."
CRASHED = (
    "The process stopped while this tool was running. It may or may not have taken effect. "
    "Check before you call it again."
)
ABANDONED = (
    "Given up while this tool was running ({}). It may or may not have taken effect. "
    "Check before you call it again."
)
COUNTED_ODDLY = (
    "The server counted {} tokens where about {} were expected. If it counted far fewer, it has "
    "cut the prompt without saying so: check the window it was started with."
)
SUMMARISE = (
    "Older messages are about to leave your view. Write down what you must not forget, in these "
    "five lines and nothing else:\nTask:\nConstraints:\nFiles:\nDecisions:\nNext:"
)


@dataclass(frozen=True, slots=True)
class Step:
    state: State
    events: tuple[Event, ...]
    """The one that came in first, then those that follow from it. All go into the log."""
    effects: tuple[Effect, ...]


def step(state: State, event: Event) -> Step:
    """Advance a session by one event from the world."""
    stops_work = interrupts(state, event)
    state, followed = settle(evolve(state, event))
    events = (event, *followed)
    effects = tuple(owed(state)) if any(map(creates_work, events)) else ()
    return Step(state, events, (StopWork(), *effects) if stops_work else effects)


def recover(state: State, at: float | None = None) -> Step:
    """Close what a crash left open, and find out what is owed now.

    A tool that had started runs again only if that is safe; of any other the model is told that
    nobody knows. Performing the effects is the caller's choice: reading a session runs nothing.
    """
    events: list[Event] = [] if at is None else [Reopened(at)]
    for each in state.run.unanswered if state.run and not state.run.stopped else ():
        if each.started and not repeatable(each):
            events.append(ToolFinished(each.call.id, Outcome.UNKNOWN, CRASHED, at or now(state)))
    state = replay(events, state)
    state, followed = settle(state)
    return Step(state, (*events, *followed), tuple(owed(state)))


def replay(events: Iterable[Event], state: State = NEW) -> State:
    """Rebuild a state from the events that made it."""
    for event in events:
        state = evolve(state, event)
    return state


def settle(state: State) -> tuple[State, tuple[Event, ...]]:
    """Let everything follow that follows by the rules alone."""
    events: list[Event] = []
    while (event := next_event(state)) is not None:
        if len(events) == LONGEST_STEP:
            raise RuntimeError(f"the rules do not come to rest: {event}")
        events.append(event)
        state = evolve(state, event)
    return state, tuple(events)


# --- the questions of the loop, in their order ----------------------------------------------


def next_event(state: State) -> Event | None:
    """What follows by the rules; None when it is the world's turn."""
    run = state.run
    if run is None:
        return None
    if run.stopped:
        return FollowedUp() if run.queued else None
    if run.miscounted:
        return Warned(About.COUNT, COUNTED_ODDLY.format(*run.miscounted))
    if run.cancelled:
        return given_up(state, run, Outcome.CANCELLED, CANCELLED) or RunStopped(
            StopReason.CANCELLED, report(StopReason.CANCELLED, "", run.ledger)
        )
    if run.overtime and run.unanswered:
        return given_up(state, run, Outcome.NOT_RUN, TIME_WAS_UP)
    if run.waiting:
        return None
    if run.failed:
        return last_words(run, run.ending or Ending(StopReason.MODEL_FAILED, run.failed))
    if run.unanswered:
        return admission(state, run)
    if run.summary:
        return summed_up(state, run)
    if run.reply:
        return judged(state, run)
    if run.ending:
        return conclusion(state, run, run.ending)
    return between_rounds(state, run)


def between_rounds(state: State, run: Run) -> Event:
    """Every call is answered. What has to happen before the model is asked again?"""
    if run.queued:
        return Steered()
    seconds = inf if run.overtime else state.elapsed - run.began
    if reason := run.spent.crossed(run.settings.limits, seconds):
        return Ending(reason, limit_sentence(reason, run.settings.limits))
    return guarded(run) or fitted(state, run) or ask(state, Purpose.WORK)


# --- calls ----------------------------------------------------------------------------------


def admission(state: State, run: Run) -> Event | None:
    """Answer the calls that must not be run, then let the others run."""
    if any(each.admitted for each in run.open):
        return None
    for each in run.unanswered:
        if refusal := refused(state, each, run):
            return ToolFinished(each.call.id, Outcome.NOT_RUN, refusal, now(state))
    return CallsAdmitted(tuple(each.call.id for each in run.unanswered))


def refused(state: State, each: OpenCall, run: Run) -> str:
    """Why this call is not run, in words for the model; empty if it is."""
    place = run.open.index(each)
    answered = len(run.open) - len(run.unanswered)
    limits = run.settings.limits
    if each.problem:
        return each.problem
    if each.tool is None:
        return not_found(each.call.name, run.offered)
    if place >= limits.calls - run.spent.calls + answered:
        return f"Not run: {limit_sentence(StopReason.OUT_OF_CALLS, limits).lower()}"
    return repeated_too_often(state, each, run)


def repeated_too_often(state: State, each: OpenCall, run: Run) -> str:
    """A call that was made before is not run again if its result can still be seen, or if there
    is nothing but repeats. Who has lost sight of a result may ask for it again."""
    patience, evidence = run.settings.patience, run.evidence
    times = guards.repeats(evidence, each.fingerprint, each.tool)
    most = min(patience.repeat_stopped, patience.repeat_blocked or patience.repeat_stopped)
    if times >= most:
        visible = can_be_seen(state, guards.shown_in(evidence, each.fingerprint))
        ends = times >= patience.repeat_stopped and evidence.barren >= patience.repeat_stopped - 2
        if visible or ends:
            return guards.blocked(each.call.name, times, visible=visible)
    earlier = run.open[: run.open.index(each)]
    twins = sum(one.fingerprint == each.fingerprint for one in earlier)
    if twins and times + twins >= most and not (each.tool and each.tool.polls):
        return guards.twins(each.call.name, twins + 1)
    return ""


def can_be_seen(state: State, call_ids: tuple[str, ...]) -> bool:
    return any(
        isinstance(entry.message, ToolMessage)
        and entry.message.call_id in call_ids
        and not entry.faded
        for entry in state.history.body
    )


def given_up(state: State, run: Run, outcome: Outcome, text: str) -> Event | None:
    """The first call nobody waits for any longer; every call gets its result all the same, and
    of one that was under way nobody may say that it did not happen."""
    for each in run.unanswered:
        if each.started and not repeatable(each):
            why = ABANDONED.format("cancelled by the user" if run.cancelled else "time was up")
            return ToolFinished(each.call.id, Outcome.UNKNOWN, why, now(state))
        return ToolFinished(each.call.id, outcome, text, now(state))
    return None


def repeatable(each: OpenCall) -> bool:
    return each.tool is not None and each.tool.effect is not SideEffect.UNSAFE


def now(state: State) -> float:
    """The time of an event that follows from others: theirs."""
    return state.now or 0.0


# --- replies --------------------------------------------------------------------------------


def judged(state: State, run: Run) -> Event:
    """A reply without calls: is it an answer?"""
    reply, limits = run.reply, run.settings.limits
    assert reply is not None
    wrong = reply.problem or guards.not_an_answer(reply.text)
    cut_off = "\n[... the reply reached the output limit]" if reply.finish is Finish.LENGTH else ""
    if run.ending:
        if wrong or reply.calls or reply.finish is Finish.REFUSED:
            return last_words(run, run.ending)
        text = checked(reply.text, run.ledger, shown(state)) + cut_off
        return RunStopped(run.ending.reason, text)
    if reply.finish is Finish.REFUSED:
        said = (
            reply.text.strip() or "The model or its provider refused to answer, and gave no reason."
        )
        return RunStopped(StopReason.REFUSED, said)
    if run.queued:
        return Steered()
    may_ask_again = run.evidence.reasks < limits.reasks
    if wrong:
        if not may_ask_again:
            return Ending(StopReason.CONCLUDED, "The model gave no usable reply.")
        if not reply.text.strip() and not reply.problem:
            return Nudged(Why.SILENT, guards.silence(run.spent.calls))
        return Nudged(Why.MALFORMED, wrong)
    if reply.finish is Finish.LENGTH and may_ask_again:
        return Nudged(Why.CUT_SHORT, guards.CUT_SHORT)
    return RunStopped(StopReason.ANSWERED, "".join((*run.parts, reply.text)) + cut_off)


def summed_up(state: State, run: Run) -> Event:
    """A summary by the model counts only if it keeps what must be kept; the digest always does."""
    assert run.summary is not None
    text = run.summary.text.strip()
    if not text:
        wrong = "it is empty"
    elif guards.not_an_answer(text):
        wrong = "it looks like a tool call written as text"
    elif len(text) > run.settings.caps.digest:
        wrong = "it is too long"
    else:
        wrong = left_out(text, run.ledger, shown(state))
    if not wrong:
        return Summarised(text)
    return Warned(About.SUMMARY, f"The model's summary was not used: {wrong}.")


# --- endings --------------------------------------------------------------------------------


def conclusion(state: State, run: Run, ending: Ending) -> Event:
    """The run must end: one more request, without tools; where even that cannot be, the report."""
    if run.settings.on_limit is OnLimit.ERROR:
        return last_words(run, ending)
    if not fits(state, run, Purpose.CONCLUDE):
        return squeezed(state, run, framed(state, run, Purpose.CONCLUDE)) or last_words(run, ending)
    return ask(state, Purpose.CONCLUDE)


def last_words(run: Run, ending: Ending) -> RunStopped:
    """The end of a run without an answer of the model: what the ledger knows."""
    return RunStopped(ending.reason, report(ending.reason, ending.detail, run.ledger))


def limit_sentence(reason: StopReason, limits: Limits) -> str:
    limit = {
        StopReason.OUT_OF_ROUNDS: several(limits.rounds, "round"),
        StopReason.OUT_OF_CALLS: several(limits.calls, "tool call"),
        StopReason.OUT_OF_TOKENS: several(limits.tokens, "token"),
        StopReason.OUT_OF_MONEY: f"${limits.cost / 1e6:.2f}",
        StopReason.OUT_OF_TIME: several(limits.seconds, "second"),
    }[reason]
    if reason is StopReason.OUT_OF_MONEY and limits.cost < 10_000:  # less than a cent
        limit = f"${limits.cost / 1e6:f}".rstrip("0")
    return f"The limit of {limit} is reached."


def several(number: float, what: str) -> str:
    figure = f"{number:g}" if number < 1e5 else f"{number:.0f}"
    return f"{figure} {what}" if number == 1 else f"{figure} {what}s"


# --- guards and room ------------------------------------------------------------------------


def guarded(run: Run) -> Event | None:
    """What the guards make of the rounds so far."""
    match guards.verdict(run.evidence, run.settings.patience, run.offered):
        case Nudge(why, text):
            return Nudged(why, text)
        case Drop(tool):
            return ToolDropped(tool)
        case Tell(text):
            return Warned(About.STALE, text)
        case Stop(text):
            return Ending(StopReason.NO_PROGRESS, text)
        case None:
            return None


def fitted(state: State, run: Run) -> Event | None:
    """What must leave the window, and the end of the run if that is not enough."""
    frame, budget = framed(state, run, Purpose.WORK), run.settings.budget
    if evicted := window.rolled(state.history, run.usable):
        return evicted
    room = frame.room(state.history.size)
    if budget.evicts and room < budget.evict_below:
        relief = window.relief(state.history, frame, run.settings.caps)
        if relief and relief.dropped and wants_summary(state, run):
            return ask(state, Purpose.SUMMARISE)
        if relief:
            return relief
    if room < budget.min_round or run.evidence.overflows > run.settings.limits.overflows:
        return squeezed(state, run, frame) or Ending(
            StopReason.CONTEXT_EXHAUSTED,
            window.too_small(state.history, frame, run.settings.system, run.offered),
        )
    used = frame.expected(state.history.size)
    if not run.warned and used >= budget.warn_at * frame.window:
        text = f"The window is filling up: {used} of {frame.window} tokens are in use."
        return Warned(About.WINDOW, text)
    return None


def wants_summary(state: State, run: Run) -> bool:
    """Before rounds leave the window the model may write down what it must not forget."""
    wanted = run.settings.summaries and not run.summarised
    return wanted and fits(state, run, Purpose.SUMMARISE)


def fits(state: State, run: Run, purpose: Purpose) -> bool:
    frame = framed(state, run, purpose)
    return frame.room(request_size(state, run, purpose) - frame.fixed) >= 0


def squeezed(state: State, run: Run, frame: Frame) -> Event | None:
    """The last ways to make room: idle tools, everything but the newest round, the user's words."""
    history, caps = state.history, run.settings.caps
    if run.settings.budget.evicts:
        used = tuple({record.tool for record in run.ledger.records})
        if evicted := window.squeeze(history, frame, caps, run.offered, used):
            return evicted
    to = window.task_cut(history, frame)
    return None if to is None else TaskCut(to)


def framed(state: State, run: Run, purpose: Purpose) -> Frame:
    fixed = run.fixed if purpose is Purpose.WORK else run.system
    return Frame(state.gauge, run.settings.budget, window_of(state, run), fixed)


# --- what is owed ---------------------------------------------------------------------------


def ask(state: State, purpose: Purpose) -> ModelAsked:
    assert state.run is not None
    size = request_size(state, state.run, purpose)
    return ModelAsked(state.asks + 1, purpose, state.gauge.expect(size).safe)


def creates_work(event: Event) -> bool:
    return isinstance(event, ModelAsked | CallsAdmitted)


def interrupts(state: State, event: Event) -> bool:
    """Work is under way, and this event makes it useless."""
    run = state.run
    if run is None or run.stopped or not (run.waiting or run.unanswered):
        return False
    return isinstance(event, CancelAsked) or (
        isinstance(event, TimeRanOut) and event.run == run.number
    )


def owed(state: State) -> Iterator[Effect]:
    """The work that the state is waiting for."""
    run = state.run
    if run is None or run.stopped:
        return
    if run.waiting:
        yield CallModel(
            run.waiting.ask, run.waiting.purpose, request(state, run, run.waiting.purpose)
        )
    elif calls := tuple(each.call for each in run.unanswered if each.admitted):
        yield RunTools(calls)


def request(state: State, run: Run, purpose: Purpose) -> Request:
    tail = {
        Purpose.WORK: (),
        Purpose.CONCLUDE: (Note(guards.CONCLUDE),),
        Purpose.SUMMARISE: (Note(SUMMARISE),),
    }[purpose]
    return Request(
        system=run.settings.system,
        tools=run.offered if purpose is Purpose.WORK else (),
        head=state.history.head,
        body=state.history.body,
        tail=tail,
        output=run.settings.budget.output,
    )


def shown(state: State) -> Iterator[str]:
    """What the model was shown by others: its own words are no evidence for what it claims."""
    for entry in (*state.history.head, *state.history.body):
        if not isinstance(entry.message, AssistantMessage):
            yield entry.message.text
