"""How a state comes of its events: `evolve`, one case for each kind of event.

This is bookkeeping. It decides nothing, so that an old log keeps its meaning when the rules in
`machine` change. What an event does not find (a late result, a reply to a request that was given
up) changes only what was spent and what the ledger knows.
"""

from dataclasses import replace
from typing import assert_never

from holdfast.core import guards, window
from holdfast.core.cut import cut, digest_arguments
from holdfast.core.digest import digest
from holdfast.core.events import (
    About,
    CallsAdmitted,
    CancelAsked,
    Ending,
    Event,
    Evicted,
    Failure,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    Nudged,
    Outcome,
    Pinned,
    Purpose,
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
    Warned,
    Why,
)
from holdfast.core.guards import Deed
from holdfast.core.history import Entry, OpenCall, closed, fingerprint, noted, opened
from holdfast.core.ledger import Record, first_words
from holdfast.core.limits import StopReason, Usage
from holdfast.core.messages import Note, ToolMessage, clean
from holdfast.core.state import Run, State, Waiting, request_size, window_of
from holdfast.core.tokens import Gauge, size_of, size_of_system, size_of_tools
from holdfast.core.tools import Keep, ToolSpec, resolve

READ_RESULT = "read_result"
"""The tool that pages through a result; named in every cut where the run has it."""


def evolve(state: State, event: Event) -> State:
    """The state after one more fact."""
    match event:
        case UserSpoke():
            return heard(passed(state, event.at), event)
        case ModelReplied():
            return replied(passed(state, event.at), event)
        case ModelFailed():
            return failed(passed(state, event.at), event)
        case ToolStarted():
            return started(passed(state, event.at), event)
        case ToolFinished():
            return finished(passed(state, event.at), event)
        case Pinned(key, text):
            return pinned(passed(state, event.at), key, text)
        case ToolsChanged(tools):
            return offered(passed(state, event.at), tools=tools)
        case ToolsFound(names):
            return offered(passed(state, event.at), found=names)
        case CancelAsked():
            return working(passed(state, event.at), cancelled=True, waiting=None)
        case TimeRanOut():
            return overtime(passed(state, event.at))
        case ModelAsked():
            return asked(state, event)
        case CallsAdmitted(call_ids):
            return admitted(state, call_ids)
        case Nudged():
            return nudged(state, event)
        case ToolDropped(tool):
            return dropped(state, tool)
        case Warned(about):
            return warned(state, about)
        case Steered():
            return steered(state)
        case TaskCut(to):
            return replace(state, history=window.shorten_task(state.history, to))
        case Evicted():
            return evicted(state, event)
        case Summarised(text):
            history = replace(state.history, summary=text)
            return working(replace(state, history=history), summary=None, summarised=True)
        case Ending():
            return working(state, ending=event, reply=None)
        case RunStopped():
            return stopped(state, event)
        case _:
            assert_never(event)


# --- from the world -------------------------------------------------------------------------


def passed(state: State, at: float) -> State:
    """Time goes on; a clock that jumps back takes nothing away."""
    elapsed = max(0.0, at - state.now) if state.now else 0.0
    return replace(state, now=at, elapsed=state.elapsed + elapsed)


def heard(state: State, event: UserSpoke) -> State:
    text = event.text if event.text.strip() else "(The user sent an empty message.)"
    last = state.run
    if last is not None and not last.stopped:
        return working(state, queued=(*last.queued, text))
    settings = event.settings or (last.settings if last else None)
    if settings is None:
        raise ValueError("the first message of a session must bring the settings of its run")
    same_model = last is not None and last.settings.model == settings.model
    same_rates = state.gauge.rates == settings.rates
    return replace(
        state,
        history=state.history.hearing(text, begins_run=True),
        gauge=state.gauge if same_model and same_rates else Gauge.new(settings.rates),
        window=state.window if same_model else None,
        runs=state.runs + 1,
        run=Run(
            number=state.runs + 1,
            began=state.elapsed,
            settings=settings,
            tools=settings.tools,
            system=(system := size_of_system(settings.system)),
            fixed=system + size_of_tools(settings.tools),
        ),
    )


def replied(state: State, event: ModelReplied) -> State:
    run = state.run
    if run is None:
        return state
    if run.waiting is None or run.waiting.ask != event.ask:
        late = run.spent.adding(event.usage) if event.usage else run.spent
        return replace(state, run=replace(run, spent=late))
    waiting, usage = run.waiting, event.usage or estimated(state.gauge, run.waiting, event.reply)
    odd = event.usage and usage.prompt > 0 and not state.gauge.believes(waiting.size, usage.prompt)
    run = replace(
        run,
        waiting=None,
        spent=run.spent.adding(usage),
        miscounted=(usage.prompt, waiting.expected) if odd else None,
    )
    if event.usage:
        state = replace(state, gauge=state.gauge.learn(waiting.size, usage.prompt))
    if waiting.purpose is Purpose.SUMMARISE:
        return replace(state, run=replace(run, summary=event.reply))
    wanted = event.reply.calls if waiting.purpose is Purpose.WORK else ()
    most = run.settings.limits.calls_per_reply
    calls = opened(event.reply, state.calls + 1, most) if wanted else ()
    return replace(
        state,
        calls=state.calls + len(calls),
        run=replace(run, reply=event.reply, open=calls),
    )


def estimated(gauge: Gauge, waiting: Waiting, reply: Reply) -> Usage:
    """What a request cost, where the server does not say."""
    size = size_of(Note(reply.text + reply.reasoning))
    return Usage(prompt=waiting.expected, completion=gauge.expect(size).tokens)


def failed(state: State, event: ModelFailed) -> State:
    run = state.run
    if run is None or run.waiting is None or run.waiting.ask != event.ask:
        return state
    waiting, run = run.waiting, replace(run, waiting=None)
    if event.failure is not Failure.OVERFLOW or waiting.purpose is Purpose.CONCLUDE:
        detail = digest(event.detail, 400) or event.failure.value
        return replace(state, run=replace(run, failed=detail))
    evidence = replace(run.evidence, overflows=run.evidence.overflows + 1)
    told = event.window if event.window and event.window > 0 else None
    smaller = min(told or window_of(state, run), window_of(state, run))
    gauge = state.gauge.learn(waiting.size, event.tokens) if event.tokens else state.gauge
    most = smaller - run.settings.budget.output
    if gauge.expect(waiting.size).safe <= most:
        gauge = gauge.refused(waiting.size, most)
    return replace(
        state, gauge=gauge, window=smaller, run=replace(run, evidence=evidence, summarised=True)
    )


def started(state: State, event: ToolStarted) -> State:
    if state.run is None:
        return state
    return working(
        state,
        open=tuple(
            replace(each, started=True) if each.call.id == event.call_id else each
            for each in state.run.open
        ),
    )


def finished(state: State, event: ToolFinished) -> State:
    run = state.run
    if run is None:
        return state
    each = next((one for one in run.unanswered if one.call.id == event.call_id), None)
    if each is None:
        ledger = run.ledger.finished_late(event.call_id, event.outcome, event.text)
        return replace(state, run=replace(run, ledger=ledger))
    done = answered(each, event, run)
    record = Record(
        each.call.id,
        each.call.name,
        digest_arguments(each.call.arguments, 300),
        event.outcome,
        first_words(event.text),
    )
    run = replace(
        run,
        open=tuple(done if one is each else one for one in run.open),
        ledger=run.ledger.adding(record),
        spent=replace(run.spent, calls=run.spent.calls + 1),
    )
    return replace(state, run=run) if run.unanswered else closed_round(state, run)


def answered(each: OpenCall, event: ToolFinished, run: Run) -> OpenCall:
    """The call with its result, as the model will see it: cut, and with a word on repeats."""
    tool = resolve(each.call.name, run.tools)
    whole = clean(event.text)
    more = ""
    if any(one.name == READ_RESULT for one in run.tools):
        more = f'{READ_RESULT}(call_id="{each.call.id}") reads the rest'
    text = cut(whole, run.settings.cap_of(tool), tool.keep if tool else Keep.HEAD, more)
    came, last = fingerprint(whole), guards.last_result(run.evidence, each.fingerprint)
    if event.outcome is Outcome.NOT_RUN and last is not None:
        came = last  # what was not run again brought nothing new
    times = guards.repeats(run.evidence, each.fingerprint, tool) if came == last else 1
    if event.outcome is not Outcome.NOT_RUN and times >= run.settings.patience.repeat_told:
        text += guards.repeated(times, run.settings.patience)
    bad = event.outcome is not Outcome.DONE
    message = ToolMessage(each.call.id, each.call.name, text or "(no output)", failed=bad)
    return replace(
        each, result=message, length=len(whole), outcome=event.outcome, came=came, times=times
    )


def closed_round(state: State, run: Run) -> State:
    """All calls are answered: the round enters the history, and the guards remember it."""
    assert run.reply is not None
    wanted = len(run.reply.calls)
    entries = list(closed(run.reply.text, run.open, run.settings.caps, wanted=wanted))
    rolling = {tool.name for tool in run.tools if tool.keep_last is not None}
    first = len(state.history.body)
    whole = tuple(
        (entry.message.tool, first + place)
        for place, entry in enumerate(entries)
        if rolling and isinstance(entry.message, ToolMessage) and entry.message.tool in rolling
    )
    history = state.history.with_entries(entries)
    history = replace(history, whole=history.whole + whole) if whole else history
    evidence = guards.remember(run.evidence, tuple(deed(each, run) for each in run.open))
    used = {tool.name for each in run.open if (tool := resolve(each.call.name, run.tools))}
    shelved = tuple(name for name in run.shelved if name not in used)
    if shelved != run.shelved:
        run = run.offering(run.tools, shelved)
    run = replace(run, open=(), reply=None, evidence=evidence, parts=())
    return replace(state, history=history, run=run)


def deed(each: OpenCall, run: Run) -> Deed:
    tool = resolve(each.call.name, run.tools)
    return Deed(
        tool=tool.name if tool else each.call.name,
        call=each.fingerprint,
        result=each.came,
        failed=each.outcome is not Outcome.DONE,
        mutates=tool is not None and tool.mutates,
        polls=tool is not None and tool.polls,
        exists=tool is not None,
        times=each.times,
    )


def pinned(state: State, key: str, text: str) -> State:
    """A fact is noted where it was learned, and again in the head once that place is evicted."""
    cap = state.run.settings.caps.pin if state.run else len(text)
    pins = {name: kept for name, kept in state.pins if name != key}
    if text:
        pins[key] = cut(clean(text), cap)
        state = replace(state, history=state.history.saying(Note(f"[{key}] {pins[key]}")))
    return replace(state, pins=tuple(pins.items()))


def offered(
    state: State, *, tools: tuple[ToolSpec, ...] | None = None, found: tuple[str, ...] = ()
) -> State:
    run = state.run
    if run is None or run.stopped:
        return state
    shelved = tuple(name for name in run.shelved if name not in found)
    return replace(state, run=run.offering(run.tools if tools is None else tools, shelved))


def overtime(state: State) -> State:
    """The alarm: whatever is on its way is given up, also the conclusion."""
    run = state.run
    if run is None or run.stopped:
        return state
    late = run.waiting is not None and run.waiting.purpose is Purpose.CONCLUDE
    return working(
        state, overtime=True, waiting=None, failed="time ran out" if late else run.failed
    )


# --- by the rules ---------------------------------------------------------------------------


def asked(state: State, event: ModelAsked) -> State:
    run = state.run
    assert run is not None
    size = request_size(state, run, event.purpose)
    waiting = Waiting(event.ask, event.purpose, size, event.expected)
    extra = event.purpose is Purpose.CONCLUDE
    spent = run.spent if extra else replace(run.spent, rounds=run.spent.rounds + 1)
    return replace(state, asks=event.ask, run=replace(run, waiting=waiting, spent=spent))


def admitted(state: State, call_ids: tuple[str, ...]) -> State:
    assert state.run is not None
    return working(
        state,
        open=tuple(
            replace(each, admitted=True) if each.call.id in call_ids else each
            for each in state.run.open
        ),
    )


def nudged(state: State, event: Nudged) -> State:
    run = state.run
    assert run is not None
    entries: list[Entry] = []
    if run.reply is not None and run.reply.text.strip():
        entries += closed(run.reply.text, (), run.settings.caps)
    history = state.history.with_entries([*entries, noted(event.text)])
    evidence, parts = run.evidence, run.parts
    if event.why is Why.ALL_FAILED:
        evidence = replace(evidence, failed_rounds=0)
    else:
        evidence = replace(evidence, reasks=evidence.reasks + 1)
        said = run.reply.text if run.reply and event.why is Why.CUT_SHORT else ""
        parts = (*parts, said) if said else ()
    run = replace(run, reply=None, evidence=evidence, parts=parts)
    return replace(state, history=history, run=run)


def dropped(state: State, tool: str) -> State:
    run = state.run
    assert run is not None
    rounds = dict(run.evidence.failing).get(tool, 0)
    failing = tuple(pair for pair in run.evidence.failing if pair[0] != tool)
    kept = tuple(one for one in run.tools if one.name != tool)
    run = replace(run, evidence=replace(run.evidence, failing=failing)).offering(kept, run.shelved)
    history = state.history.with_entries([noted(guards.tool_left(tool, rounds))])
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
            return working(state, warned=True)


def steered(state: State) -> State:
    run = state.run
    assert run is not None
    history = state.history
    if run.reply is not None and run.reply.text.strip():
        history = history.with_entries(list(closed(run.reply.text, (), run.settings.caps)))
    for text in run.queued:
        history = history.hearing(text, begins_run=False)
    return replace(state, history=history, run=replace(run, reply=None, queued=(), parts=()))


def evicted(state: State, event: Evicted) -> State:
    run = state.run
    assert run is not None
    history = window.evict(state.history, event, run.settings.caps, dict(state.pins), run.number)
    run = replace(run, summarised=False)
    if event.shelved:
        run = run.offering(run.tools, (*run.shelved, *event.shelved))
    return replace(state, history=history, run=run)


def stopped(state: State, event: RunStopped) -> State:
    run = state.run
    assert run is not None
    said = event.text
    if event.reason is StopReason.ANSWERED and run.reply is not None:
        said = run.reply.text  # earlier parts of it are in the history already
    history = state.history.with_entries(list(closed(said, (), run.settings.caps)))
    run = replace(run, stopped=event, waiting=None, reply=None, queued=())
    return replace(state, history=history, run=run)


def working(state: State, **changes: object) -> State:
    """The state with its run changed, if there is one that has not stopped."""
    if state.run is None or state.run.stopped:
        return state
    return replace(state, run=replace(state.run, **changes))  # type: ignore[arg-type]
