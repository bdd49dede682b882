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
from holdfast.core.effects import CallModel, Effect, Request, RunTools, StopWork
from holdfast.core.events import (
    About,
    CallsAdmitted,
    CancelAsked,
    Ending,
    Event,
    Finish,
    ModelAsked,
    Nudged,
    Outcome,
    Purpose,
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
from holdfast.core.ledger import checked, left_out, report
from holdfast.core.limits import Limits, OnLimit, StopReason
from holdfast.core.messages import Note
from holdfast.core.state import NEW, Run, State, request_size, window_of
from holdfast.core.tools import SideEffect, not_found, resolve
from holdfast.core.window import Frame

CANCELLED = "operation cancelled by user"
TIMED_OUT = "Stopped: the time of the run was up. It may or may not have taken effect."
UNKNOWN = (
    "The process stopped while this tool was running. It may or may not have taken effect. "
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
    was_busy = busy(state)
    state = evolve(state, event)
    state, followed = settle(state)
    events = (event, *followed)
    effects = list(owed(state)) if any(map(creates_work, events)) else []
    if was_busy and isinstance(event, CancelAsked | TimeRanOut):
        effects.insert(0, StopWork())
    return Step(state, events, tuple(effects))


def recover(state: State) -> Step:
    """Close what a crash left open, and find out what is owed now.

    A tool that had started runs again only if that is safe; of any other the model is told that
    nobody knows. Performing the effects is the caller's choice: reading a session runs nothing.
    """
    events: list[Event] = []
    for each in state.run.unanswered if state.run and not state.run.stopped else ():
        if each.started and not repeatable(each, state.run):
            event = ToolFinished(each.call.id, Outcome.UNKNOWN, UNKNOWN, state.now)
            events.append(event)
            state = evolve(state, event)
    state, followed = settle(state)
    return Step(state, (*events, *followed), tuple(owed(state)))


def replay(events: Iterable[Event], state: State = NEW) -> State:
    """Rebuild a state from the events that made it."""
    for event in events:
        state = evolve(state, event)
    return state


def settle(state: State) -> tuple[State, tuple[Event, ...]]:
    """Let everything follow that follows by the rules alone."""
    events = []
    while (event := next_event(state)) is not None:
        events.append(event)
        state = evolve(state, event)
    return state, tuple(events)


# --- the questions of the loop, in their order ----------------------------------------------


def next_event(state: State) -> Event | None:
    """What follows by the rules; None when it is the world's turn."""
    run = state.run
    if run is None or run.stopped:
        return None
    if run.miscounted:
        return Warned(About.COUNT, COUNTED_ODDLY.format(*run.miscounted))
    if run.cancelled:
        return given_up(state, run, Outcome.CANCELLED, CANCELLED) or RunStopped(
            StopReason.CANCELLED, report(StopReason.CANCELLED, "", run.ledger)
        )
    if run.overtime and run.unanswered:
        return given_up(state, run, Outcome.TIMED_OUT, TIMED_OUT)
    if run.waiting:
        return None
    if run.failed:
        return broken(run)
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
        if refusal := refused(each, run):
            return ToolFinished(each.call.id, Outcome.NOT_RUN, refusal, state.now)
    return CallsAdmitted(tuple(each.call.id for each in run.unanswered))


def refused(each: OpenCall, run: Run) -> str:
    """Why this call is not run, in words for the model; empty if it is."""
    place = run.open.index(each)
    answered = len(run.open) - len(run.unanswered)
    limits, patience = run.settings.limits, run.settings.patience
    if each.problem:
        return each.problem
    if (tool := resolve(each.call.name, run.tools)) is None:
        return not_found(each.call.name, run.offered)
    if place >= limits.calls - run.spent.calls + answered:
        return f"Not run: the limit of {limits.calls} tool calls is reached."
    twins = sum(one.fingerprint == each.fingerprint for one in run.open[:place])
    times = guards.repeats(run.evidence, each.fingerprint, tool) + (0 if tool.polls else twins)
    if times >= patience.repeat_stopped or times >= (patience.repeat_blocked or times + 1):
        return guards.blocked(tool.name, times)
    return ""


def given_up(state: State, run: Run, outcome: Outcome, text: str) -> Event | None:
    """The first call nobody waits for any longer; every call gets its result all the same."""
    for each in run.unanswered:
        return ToolFinished(each.call.id, outcome, text, state.now)
    return None


def repeatable(each: OpenCall, run: Run | None) -> bool:
    tool = resolve(each.call.name, run.tools) if run else None
    return tool is not None and tool.effect is not SideEffect.UNSAFE


# --- replies --------------------------------------------------------------------------------


def judged(state: State, run: Run) -> Event:
    """A reply without calls: is it an answer?"""
    reply, limits = run.reply, run.settings.limits
    assert reply is not None
    wrong = reply.problem or guards.not_an_answer(reply.text)
    if run.ending:
        if wrong or reply.finish is Finish.REFUSED:
            return RunStopped(
                run.ending.reason, report(run.ending.reason, run.ending.detail, run.ledger)
            )
        seen = (message_text for message_text in texts(state))
        return RunStopped(run.ending.reason, checked(reply.text, run.ledger, seen))
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
    cut_off = "\n[... the reply reached the output limit]" if reply.finish is Finish.LENGTH else ""
    return RunStopped(StopReason.ANSWERED, "".join((*run.parts, reply.text)) + cut_off)


def summed_up(state: State, run: Run) -> Event:
    """A summary by the model counts only if it keeps what must be kept; the digest always does."""
    assert run.summary is not None
    text = run.summary.text.strip()
    missing = guards.not_an_answer(text) or left_out(text, run.ledger, texts(state))
    if not missing and len(text) <= run.settings.caps.digest:
        return Summarised(text)
    return Warned(
        About.SUMMARY, f"The model's summary was not used: {missing or 'it is too long'}."
    )


# --- endings --------------------------------------------------------------------------------


def conclusion(state: State, run: Run, ending: Ending) -> Event:
    """The run must end: one more request, without tools; where even that cannot be, the report."""
    last_words = RunStopped(ending.reason, report(ending.reason, ending.detail, run.ledger))
    if run.settings.on_limit is OnLimit.ERROR:
        return last_words
    if not fits(state, run, Purpose.CONCLUDE):
        return squeezed(state, run, framed(state, run, Purpose.CONCLUDE)) or last_words
    return ask(state, Purpose.CONCLUDE)


def broken(run: Run) -> RunStopped:
    reason = run.ending.reason if run.ending else StopReason.MODEL_FAILED
    detail = run.ending.detail if run.ending else f"The model could not be reached: {run.failed}"
    return RunStopped(reason, report(reason, detail, run.ledger))


def limit_sentence(reason: StopReason, limits: Limits) -> str:
    return {
        StopReason.OUT_OF_ROUNDS: f"The limit of {limits.rounds} rounds is reached.",
        StopReason.OUT_OF_CALLS: f"The limit of {limits.calls} tool calls is reached.",
        StopReason.OUT_OF_TOKENS: f"The limit of {limits.tokens} tokens is reached.",
        StopReason.OUT_OF_MONEY: f"The limit of ${limits.cost / 1e6:.2f} is reached.",
        StopReason.OUT_OF_TIME: f"The limit of {limits.seconds:g} seconds is reached.",
    }[reason]


# --- guards and room ------------------------------------------------------------------------


def guarded(run: Run) -> Event | None:
    """What the guards make of the rounds so far."""
    match guards.verdict(run.evidence, run.settings.patience, run.tools):
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
    if evicted := window.rolled(state.history, run.tools):
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


def busy(state: State) -> bool:
    run = state.run
    return run is not None and not run.stopped and bool(run.waiting or run.unanswered)


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


def texts(state: State) -> Iterator[str]:
    """Everything the model was shown in the last request."""
    for entry in (*state.history.head, *state.history.body):
        message = entry.message
        yield message.text
        for call in getattr(message, "calls", ()):
            yield call.arguments
