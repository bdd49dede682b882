"""The loop, as a pure function: an event from the world goes in, and out come the state after
it, the events that follow from it by the rules, and the work that is owed.

    step(state, event) -> Step(state, events, effects)

Nothing here waits, runs, asks the time or makes up an id. A driver performs the effects and
feeds the events that come of them back in, and that is the whole loop:

    UserSpoke ──► ModelAsked ─(CallModel)─► ModelReplied ──► a text? RunStopped
                      ▲                          │
                      └──── ToolFinished ◄─(RunTools)── calls? CallsAdmitted

To read it, follow `next_event`: it asks the questions of the loop in their order, and each answer
is an event. (`calls` answers for calls, `room` for what fits, `guards` for what repeats.) Since it looks at the state alone, a process that died after any event goes on where
it was: `recover` closes what was open and asks the same questions.

The laws this keeps are in `docs/explain/the-laws.md`, each with the test that would catch a break.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from holdfast.core import answers, guards, instructions
from holdfast.core.calls import admission, given_up, left_open, may_run_again, now
from holdfast.core.claims import checked, summary_fault
from holdfast.core.cut import cut
from holdfast.core.effects import CallModel, Effect, Request, RunTools, StopWork
from holdfast.core.events import (
    About,
    CallsAdmitted,
    CancelAsked,
    EndDecided,
    Event,
    Finish,
    FollowedUp,
    FromTheWorld,
    ModelAsked,
    Nudged,
    Purpose,
    Reopened,
    Reply,
    RunStopped,
    Steered,
    Summarised,
    TimeRanOut,
    ToolDropped,
    UserSpoke,
    Warned,
    Why,
)
from holdfast.core.fold import evolve
from holdfast.core.guards import Drop, Nudge, Stop, Tell
from holdfast.core.ledger import report
from holdfast.core.limits import OnLimit, StopReason, limit_sentence
from holdfast.core.messages import AssistantMessage, clean
from holdfast.core.room import ask, fits, framed, make_last_room, make_room_and_ask
from holdfast.core.state import NEW, Run, State

LONGEST_STEP = 4_000
"""Events that may follow from one: far above what any rule needs, and better than to hang."""
COUNTED_ODDLY = (
    "The server counted {} tokens where about {} were expected. If it counted far fewer, it has "
    "cut the prompt without saying so: check the window it was started with."
)
CUT_OFF = "\n[... the reply reached the output limit]"


@dataclass(frozen=True, slots=True)
class Step:
    state: State
    events: tuple[Event, ...]
    """The one that came in first, then those that follow from it. All go into the log."""
    effects: tuple[Effect, ...]


def step(state: State, event: FromTheWorld) -> Step:
    """Advance a session by one event from the world."""
    stops_work = interrupts(state, event)
    state, followed = settle(evolve(state, event))
    events = (event, *followed)
    effects = tuple(owed(state)) if any(map(creates_work, events)) else ()
    return Step(state, events, (StopWork(), *effects) if stops_work else effects)


def recover(state: State, at: float | None = None, *, heard: str = "") -> Step:
    """Close what a crash left open, and find out what is owed now.

    A tool that had started runs again only if that is safe; of any other the model is told that
    nobody knows. With `heard`, which the user has said since, no call runs before the model has
    heard it. Performing the effects is the caller's choice: reading a session runs nothing.
    """
    time = now(state) if at is None else at
    events: list[Event] = []
    if state.run and not state.run.stopped:
        events.append(Reopened(time))
        for each in state.run.unanswered:
            if heard or (each.started and not may_run_again(each)):
                events.append(left_open(each, time))
        if heard:
            events.append(UserSpoke(heard, time))
    state, followed = settle(replay(events, state))
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
        return given_up(state, run) if run.unanswered else cancelled(run)
    if run.overtime and run.unanswered:
        return given_up(state, run)
    if run.waiting or run.tools_at_work:
        return None
    if run.failed:
        return broken(run)
    if run.unanswered:
        return admission(state, run)
    if run.summary:
        return summed_up(state, run, run.summary)
    if run.reply and run.ending:
        return concluded(state, run, run.reply, run.ending)
    if run.reply:
        return judged(state, run, run.reply)
    if run.ending:
        return conclusion(state, run, run.ending)
    return between_rounds(state, run)


def between_rounds(state: State, run: Run) -> Event:
    """Every call is answered. What has to happen before the model is asked again?"""
    if reason := limit_crossed(state, run):
        if begun := answer_begun(run):
            return RunStopped(reason, begun + CUT_OFF)
        return EndDecided(reason, limit_sentence(reason, run.settings.limits))
    if run.queued:
        return Steered()
    return guarded(run) or make_room_and_ask(state, run)


def limit_crossed(state: State, run: Run) -> StopReason | None:
    seconds = inf if run.overtime else state.elapsed - run.began
    return run.spent.crossed(run.settings.limits, seconds)


# --- replies --------------------------------------------------------------------------------


def judged(state: State, run: Run, reply: Reply) -> Event:
    """A reply without calls: is it an answer?"""
    said = clean("".join((*run.parts, reply.text)))
    if reply.finish is Finish.REFUSED:
        nothing_said = "The model or its provider refused to answer, and gave no reason."
        return RunStopped(StopReason.REFUSED, nothing_said if answers.not_an_answer(said) else said)
    if run.queued and not limit_crossed(state, run):
        return Steered()
    may_ask_again = run.evidence.reasks < run.settings.limits.reasks
    no_answer = answers.not_an_answer(reply.text) or answers.not_an_answer(said)
    if wrong := reply.problem or no_answer:
        if not may_ask_again and (begun := answer_begun(run)):
            return RunStopped(StopReason.ANSWERED, begun + CUT_OFF)
        if not may_ask_again:
            return EndDecided(StopReason.CONCLUDED, "The model gave no usable reply.")
        if not reply.text.strip() and not reply.problem:
            return Nudged(Why.SILENT, instructions.silence(run.spent.calls))
        return Nudged(Why.MALFORMED, cut(clean(wrong), run.settings.caps.line * 2))
    if reply.finish is Finish.LENGTH and may_ask_again:
        return Nudged(Why.CUT_SHORT, instructions.CUT_SHORT)
    return RunStopped(StopReason.ANSWERED, whole_or_cut(reply, said))


def answer_begun(run: Run) -> str:
    """The parts of an answer that was to be continued: better than a summary of it, if they are
    an answer at all."""
    begun = clean("".join(run.parts))
    return "" if answers.not_an_answer(begun) else begun


def whole_or_cut(reply: Reply, text: str) -> str:
    return text + CUT_OFF if reply.finish is Finish.LENGTH else text


def summed_up(state: State, run: Run, summary: Reply) -> Event:
    """A summary by the model counts only if it keeps what must be kept; the digest always does."""
    text = clean(summary.text).strip()
    if not text:
        fault = "it is empty"
    elif answers.not_an_answer(text):
        fault = "it looks like a tool call written as text"
    elif len(text) > run.settings.caps.digest:
        fault = "it is too long"
    else:
        fault = summary_fault(text, run.ledger, shown(state))
    if not fault:
        return Summarised(text)
    return Warned(About.SUMMARY, f"The model's summary was not used: {fault}.")


def shown(state: State) -> Iterator[str]:
    """What the model was shown by others: its own words are no evidence for what it claims."""
    for entry in (*state.history.head, *state.history.body):
        if not isinstance(entry.message, AssistantMessage):
            yield entry.message.text


# --- endings --------------------------------------------------------------------------------


def conclusion(state: State, run: Run, ending: EndDecided) -> Event:
    """The run must end: one more request, without tools; where even that cannot be, the report."""
    if run.settings.on_limit is OnLimit.ERROR:
        return last_words(run, ending)
    if fits(state, run, Purpose.CONCLUDE):
        return ask(state, run, Purpose.CONCLUDE)
    frame = framed(state, run, Purpose.CONCLUDE)
    return make_last_room(state, run, frame, wanted=0) or last_words(run, ending)


def concluded(state: State, run: Run, reply: Reply, ending: EndDecided) -> RunStopped:
    """The model's last word, checked; if there is none that can be used, the report."""
    unusable = reply.problem or reply.calls or answers.not_an_answer(reply.text)
    if unusable or reply.finish is Finish.REFUSED:
        return last_words(run, ending)
    text = checked(clean(reply.text), run.ledger, shown(state))
    return RunStopped(ending.reason, whole_or_cut(reply, text))


def cancelled(run: Run) -> RunStopped:
    return last_words(run, EndDecided(StopReason.CANCELLED, ""))


def broken(run: Run) -> RunStopped:
    """The model failed for good, in the middle of its work or before it had concluded."""
    if run.ending is None:
        return last_words(run, EndDecided(StopReason.MODEL_FAILED, run.failed))
    return last_words(run, EndDecided(run.ending.reason, f"{run.ending.detail} {run.failed}"))


def last_words(run: Run, ending: EndDecided) -> RunStopped:
    """The end of a run without an answer of the model: what the ledger knows."""
    return RunStopped(ending.reason, clean(report(ending.reason, ending.detail, run.ledger)))


# --- guards -----------------------------------------------------------------------------------


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
            return EndDecided(StopReason.NO_PROGRESS, text)
        case None:
            return None


# --- what is owed ---------------------------------------------------------------------------


def creates_work(event: Event) -> bool:
    return isinstance(event, ModelAsked | CallsAdmitted)


def interrupts(state: State, event: Event) -> bool:
    """Work is under way, and this event makes it useless."""
    run = state.run
    if run is None or run.stopped or not (run.waiting or run.unanswered):
        return False
    rings = isinstance(event, TimeRanOut) and event.run == run.number
    return rings or isinstance(event, CancelAsked)


def owed(state: State) -> Iterator[Effect]:
    """The work that the state is waiting for."""
    run = state.run
    if run is None or run.stopped:
        return
    if run.waiting:
        purpose = run.waiting.purpose
        yield CallModel(run.waiting.ask, purpose, request(state, run, purpose))
    elif calls := tuple(each.call for each in run.unanswered if each.admitted):
        yield RunTools(calls)


def request(state: State, run: Run, purpose: Purpose) -> Request:
    return Request(
        system=run.settings.system,
        tools=run.offered if purpose is Purpose.WORK else (),
        head=state.history.head,
        body=state.history.body,
        tail=instructions.instruction(purpose),
        output=run.settings.budget.output,
    )
