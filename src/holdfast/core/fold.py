"""How a state comes of its events: `evolve`, one case for each kind of event.

This is bookkeeping: which rule speaks when is decided in `machine`, so that an old log keeps its
course when the rules change. (How a digest or a notice is worded is not in the log, and may read
differently when it is folded by another version.) What an event does not find (a late result, a reply to a request that was given
up) changes only what was spent and what the ledger knows.
"""

from collections.abc import Iterator
from typing import assert_never

from holdfast.core import eviction, guards, rounds, window
from holdfast.core.copies import replace
from holdfast.core.cut import cut
from holdfast.core.events import (
    USER,
    About,
    CallsAdmitted,
    CancelAsked,
    Charged,
    Decided,
    EndDecided,
    Event,
    Evicted,
    FileKept,
    FilesRestored,
    FollowedUp,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    Nudged,
    Pinned,
    Purpose,
    Reopened,
    Reply,
    RunStopped,
    Steered,
    Summarised,
    TaskCut,
    TimeRanOut,
    ToolDropped,
    ToolFinished,
    ToolsChanged,
    ToolsFound,
    ToolStarted,
    UserSpoke,
    Waited,
    Warned,
    Why,
)
from holdfast.core.history import Entry, closed, noted
from holdfast.core.ledger import GIVEN_UP
from holdfast.core.limits import Caps, Settings, StopReason
from holdfast.core.messages import Note, clean
from holdfast.core.state import Run, State, Waiting, request_size
from holdfast.core.tokens import Gauge, size_of_system, size_of_tools
from holdfast.core.tools import ToolSpec

MOST_CRASHES = 3
"""How often a conclusion is asked for again when the process died."""
PIN_KEY, MOST_PINS = 80, 8
"""Characters of the name of a pinned fact, and how many are kept: the newest."""
RESTORED = 20
"""Files that the model is told of one by one when their changes are taken back."""
ABANDONED = 128
"""Calls of earlier runs whose late results are still told to the model."""


def evolve(state: State, event: Event) -> State:
    """The state after one more fact."""
    match event:
        case UserSpoke():
            return heard(passed(state, event.at), event)
        case ModelReplied():
            return rounds.replied(passed(state, event.at), event)
        case ModelFailed():
            return rounds.failed(passed(state, event.at), event)
        case Decided():
            return rounds.decided(answered(state, event), event)
        case ToolStarted():
            return rounds.started(passed(state, event.at), event)
        case ToolFinished():
            return rounds.finished(passed(state, event.at), event)
        case FileKept():
            return passed(state, event.at)
        case FilesRestored(paths):
            return restored(passed(state, event.at), paths)
        case Charged():
            return rounds.charged(passed(state, event.at), event)
        case Pinned(key, text):
            return pinned(passed(state, event.at), key, text)
        case ToolsChanged(tools, shelved=shelved):
            return with_tools(passed(state, event.at), tools=tools, shelved=shelved)
        case ToolsFound(names):
            return with_tools(passed(state, event.at), found=names)
        case CancelAsked():
            return working(passed(state, event.at), cancelled=True, waiting=None)
        case TimeRanOut(number):
            return overtime(passed(state, event.at), number)
        case Waited(at):
            return waited(state, at)
        case Reopened():
            return reopened(state, event)
        case ModelAsked():
            return asked(state, event)
        case CallsAdmitted():
            return rounds.admitted(state, event)
        case Nudged():
            return nudged(state, event)
        case ToolDropped(tool):
            return dropped(state, tool)
        case Warned(about):
            return warned(state, about)
        case Steered():
            return steered(state)
        case FollowedUp():
            return followed_up(state)
        case TaskCut(to):
            return replace(state, history=window.shorten_task(state.history, to))
        case Evicted():
            return evicted(state, event)
        case Summarised(text):
            history = replace(state.history, summary=text)
            return working(replace(state, history=history), summary=None, summarised=True)
        case EndDecided():
            return working(state, ending=event, reply=None)
        case RunStopped():
            return stopped(state, event)
        case _:
            assert_never(event)


# --- from the world -------------------------------------------------------------------------


def passed(state: State, at: float) -> State:
    """Time goes on; a clock that jumps back takes nothing away."""
    elapsed = 0.0 if state.now is None else max(0.0, at - state.now)
    now = at if state.now is None else max(at, state.now)  # stamps may come out of order
    return replace(state, now=now, elapsed=state.elapsed + elapsed)


def waited(state: State, at: float) -> State:
    """The time a person takes to answer is not the run's."""
    return replace(state, now=at if state.now is None else max(at, state.now))


def answered(state: State, event: Decided) -> State:
    return waited(state, event.at) if event.by == USER else passed(state, event.at)


def reopened(state: State, event: Reopened) -> State:
    """The time in between counts for nobody. A request that was on its way is given up: if it is
    still wanted it will be made again, and count again."""
    state = replace(state, now=event.at)
    run = state.run
    if run is None or run.stopped:
        return state
    calls = tuple(
        replace(each, crashes=each.crashes + 1) if each.started and not each.result else each
        for each in run.open
    )
    concluding = run.waiting is not None and run.waiting.purpose is Purpose.CONCLUDE
    failed = run.failed
    if concluding and run.crashes == MOST_CRASHES:
        failed = "The process died again and again while the model was concluding."
    crashes = run.crashes + 1
    run = replace(run, open=calls, waiting=None, failed=failed, crashes=crashes)
    return replace(state, run=run)


def heard(state: State, event: UserSpoke) -> State:
    text = event.text if event.text.strip() else "(The user sent an empty message.)"
    last = state.run
    if last is not None and not last.stopped:
        return working(state, queued=(*last.queued, text))
    if event.settings is not None:
        given = event.settings
        return begun(state, text, given, given.tools, given.shelved)
    if last is None:
        raise ValueError("the first message of a session must bring the settings of its run")
    return begun(state, text, last.settings, last.tools, last.settings.shelved)


def begun(
    state: State,
    text: str,
    settings: Settings,
    tools: tuple[ToolSpec, ...],
    shelved: tuple[str, ...],
) -> State:
    """A run, with nothing of the one before but the history and what is known of its model."""
    last = state.run
    same_model = last is not None and last.settings.model == settings.model
    same_window = last is not None and last.settings.budget.window == settings.budget.window
    same_rates = state.gauge.rates == settings.rates
    return replace(
        state,
        history=state.history.hearing(text, settings.caps, state.runs + 1, begins_run=True),
        gauge=state.gauge if same_model and same_rates else Gauge(settings.rates),
        window=state.window if same_model and same_window else None,
        abandoned=(*state.abandoned, *given_up_in(last))[-ABANDONED:],
        runs=state.runs + 1,
        run=Run(
            number=state.runs + 1,
            began=state.elapsed,
            first_ask=state.asks + 1,
            settings=settings,
            tools=tools,
            shelved=shelved,
            system=(system := size_of_system(settings.system)),
            fixed=system + size_of_tools(tool for tool in tools if tool.name not in shelved),
        ),
    )


def pinned(state: State, key: str, text: str) -> State:
    """A fact is noted where it was learned, and again in the head once that place is evicted."""
    cap = state.run.settings.caps.pin if state.run else Caps().pin
    key = clean(key)[:PIN_KEY]
    pins = {name: kept for name, kept in state.pins if name != key}
    said = "(no longer holds)"
    if text:
        said = pins[key] = cut(clean(text), cap)
    state = replace(state, history=state.history.saying(Note(f"[{key}] {said}")))
    return replace(state, pins=tuple(pins.items())[-MOST_PINS:])


def restored(state: State, paths: tuple[str, ...]) -> State:
    listed = ", ".join(map(clean, paths[:RESTORED]))
    more = f" and {len(paths) - RESTORED} more" if len(paths) > RESTORED else ""
    note = Note(f"[The user took back the changes to {listed}{more}]")
    return replace(state, history=state.history.saying(note))


def with_tools(
    state: State,
    *,
    tools: tuple[ToolSpec, ...] | None = None,
    shelved: tuple[str, ...] = (),
    found: tuple[str, ...] = (),
) -> State:
    """Tools came, went or were found; after a run this is for a next one without settings."""
    run = state.run
    if run is None:
        return state
    kept = (*run.shelved, *(name for name in shelved if name not in run.shelved))
    return replace(state, run=run.offering(tools=tools, shelved=without(kept, found)))


def without(names: tuple[str, ...], some: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in some)


def overtime(state: State, number: int) -> State:
    """The alarm: whatever is on its way is given up, also the conclusion."""
    run = state.run
    if run is None or run.stopped or run.number != number:
        return state
    late = run.waiting is not None and run.waiting.purpose is Purpose.CONCLUDE
    failed = "The time was up before the model had concluded." if late else run.failed
    return replace(state, run=replace(run, overtime=True, waiting=None, failed=failed))


# --- by the rules ---------------------------------------------------------------------------


def asked(state: State, event: ModelAsked) -> State:
    run = state.run
    assert run is not None
    size = request_size(state, run, event.purpose)
    waiting = Waiting(event.ask, event.purpose, size, event.expected)
    extra = event.purpose is Purpose.CONCLUDE
    spent = run.spent if extra else replace(run.spent, rounds=run.spent.rounds + 1)
    return replace(state, asks=event.ask, run=replace(run, waiting=waiting, spent=spent))


def nudged(state: State, event: Nudged) -> State:
    run = state.run
    assert run is not None
    entries: list[Entry] = []
    if run.reply is not None and run.reply.text.strip():
        entries += closed(run.reply, (), run.settings.caps)
    history = state.history.with_entries([*entries, noted(event.text)])
    evidence, parts = run.evidence, run.parts
    if event.why is Why.ALL_FAILED:
        evidence = replace(evidence, failed_rounds=0)
    else:
        evidence = replace(evidence, reasks=evidence.reasks + 1)
        if run.reply and event.why is Why.CUT_SHORT:
            parts = (*parts, run.reply.text)
    run = replace(run, reply=None, evidence=evidence, parts=parts)
    return replace(state, history=history, run=run)


def dropped(state: State, tool: str) -> State:
    run = state.run
    assert run is not None
    times = dict(run.evidence.failing).get(tool, 0)
    failing = tuple(pair for pair in run.evidence.failing if pair[0] != tool)
    run = replace(run, evidence=replace(run.evidence, failing=failing))
    run = run.offering(dropped=(*run.dropped, tool))
    history = state.history.with_entries([noted(guards.tool_left(tool, times))])
    return replace(state, history=history, run=run)


def warned(state: State, about: About) -> State:
    run = state.run
    assert run is not None
    match about:
        case About.COUNT:
            return working(state, miscounted=None)
        case About.SUMMARY:
            return working(state, summary=None, summarised=True)
        case About.STALE:
            return working(state, evidence=replace(run.evidence, told_stale=True))
        case About.WINDOW:
            return working(state, told_full=True)
        case _:
            assert_never(about)


def steered(state: State) -> State:
    run = state.run
    assert run is not None
    history = state.history
    if run.reply is not None and run.reply.text.strip():
        history = history.with_entries(list(closed(run.reply, (), run.settings.caps)))
    words = "\n\n".join(run.queued)  # one message: each of them must be in every request
    history = history.hearing(words, run.settings.caps, run.number, begins_run=False)
    evidence = replace(run.evidence, barren=0, stale_rounds=0, most_repeated=1, reasks=0)
    run = replace(run, reply=None, queued=(), parts=(), evidence=evidence)
    return replace(state, history=history, run=run)


def given_up_in(run: Run | None) -> Iterator[str]:
    for record in run.ledger.records if run else ():
        if record.outcome in GIVEN_UP and not record.late:
            yield record.call_id


def followed_up(state: State) -> State:
    run = state.run
    assert run is not None
    words = "\n\n".join(run.queued)
    return begun(state, words, run.settings, run.tools, run.settings.shelved)


def evicted(state: State, event: Evicted) -> State:
    run = state.run
    assert run is not None
    history = eviction.evict(state.history, event, run.settings.caps, dict(state.pins), run.number)
    run = replace(run, summarised=False)
    if event.shelved:
        run = run.offering(shelved=(*run.shelved, *event.shelved))
    return replace(state, history=history, run=run)


def stopped(state: State, event: RunStopped) -> State:
    run = state.run
    assert run is not None
    said = event.text  # also a report by the harness: the next run must know how this one ended
    if run.parts:  # these are in the history already
        said = event.text.removeprefix(clean("".join(run.parts))) or said
    history, queued = state.history, run.queued
    if queued and event.reason is StopReason.CANCELLED:
        # Who cancels wants no further run, but was heard.
        words, caps = "\n\n".join(queued), run.settings.caps
        history = history.hearing(words, caps, run.number, begins_run=False)
        queued = ()
    history = history.with_entries(list(closed(Reply(text=said), (), run.settings.caps)))
    run = replace(run, stopped=event, waiting=None, reply=None, queued=queued)
    return replace(state, history=history, run=run)


def working(state: State, **changes: object) -> State:
    """The state with its run changed, if there is one that has not stopped."""
    if state.run is None or state.run.stopped:
        return state
    return replace(state, run=replace(state.run, **changes))  # type: ignore[arg-type]
