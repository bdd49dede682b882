"""One round as bookkeeping: a reply comes, its calls are opened, answered and closed.

Part of the fold. A round enters the history only when it is whole, so there is never a moment
at which the history could not be sent.
"""

from collections.abc import Callable

from holdfast.core import guards
from holdfast.core.claims import names_in
from holdfast.core.copies import replace
from holdfast.core.cut import cut, digest_arguments
from holdfast.core.digest import digest
from holdfast.core.events import (
    CallsAdmitted,
    Charged,
    Decided,
    Failure,
    Finish,
    ModelFailed,
    ModelReplied,
    Outcome,
    Purpose,
    Reply,
    ToolFinished,
    ToolStarted,
)
from holdfast.core.eviction import LATE
from holdfast.core.guards import Deed
from holdfast.core.history import OpenCall, closed, fingerprint, opened
from holdfast.core.jsontext import dumped, json_object
from holdfast.core.ledger import Record, first_words
from holdfast.core.limits import Usage
from holdfast.core.messages import Note, ToolMessage, clean
from holdfast.core.state import Run, State, Waiting, window_of
from holdfast.core.tokens import Gauge, size_of
from holdfast.core.tools import Keep

READ_RESULT = "read_result"
"""The tool that pages through a result; named in every cut where the run has it."""

NAMED = 8_000
"""Characters of the arguments in which the ledger looks for the files they name."""

MOST_GRANTS = 64
"""Rules that the user's answers may add to a session; the newest count."""

SMALLEST_WINDOW = 256
"""A server that claims less than this is not believed."""

HOW_IT_FAILED = {
    Failure.REJECTED: "The server refused the request",
    Failure.OVERFLOW: "The server refused the request as too long",
    Failure.BUSY: "The server was too busy to answer",
    Failure.GARBLED: "The server sent what cannot be used",
    Failure.GONE: "The server could not be reached",
}


# --- the model ------------------------------------------------------------------------------


def replied(state: State, event: ModelReplied) -> State:
    run = state.run
    if run is None or not max(state.replied + 1, run.first_ask) <= event.ask <= state.asks:
        return state  # delivered twice, or for a run that is over, or for nothing we asked
    state = replace(state, replied=event.ask)
    if run.waiting is None or run.waiting.ask != event.ask:
        # The run has given this request up, but it was paid for all the same.
        late = run.spent.adding(event.usage) if event.usage else run.spent
        return replace(state, run=replace(run, spent=late))
    waiting, told = run.waiting, event.usage
    # A fallback counts with another tokenizer, which says nothing about the run's own model.
    own = told is not None and not event.by
    believed = told is not None and (not own or state.gauge.believes(waiting.size, told.prompt))
    usage = estimated(state.gauge, waiting, event.reply)
    if told is not None:
        usage = told if believed else replace(told, prompt=usage.prompt)
    odd = told is not None and told.prompt > 0 and not believed
    run = replace(
        run,
        waiting=None,
        spent=run.spent.adding(usage),
        miscounted=(told.prompt, waiting.expected) if told and odd else None,
    )
    if told is not None and own:
        state = replace(state, gauge=state.gauge.learn(waiting.size, told.prompt))
    if waiting.purpose is Purpose.SUMMARISE:
        return replace(state, run=replace(run, summary=event.reply))
    calls: tuple[OpenCall, ...] = ()
    if waiting.purpose is Purpose.WORK and event.reply.finish is not Finish.REFUSED:
        most = run.settings.limits.calls_per_reply
        calls = opened(event.reply, state.calls + 1, most, run.usable)
    run = replace(run, reply=event.reply, open=calls)
    return replace(state, calls=state.calls + len(calls), run=run)


def estimated(gauge: Gauge, waiting: Waiting, reply: Reply) -> Usage:
    """What a request cost, where the server does not say."""
    size = size_of(Note(reply.text + reply.reasoning))
    return Usage(prompt=waiting.expected, completion=gauge.weigh(size))


def failed(state: State, event: ModelFailed) -> State:
    run = state.run
    if run is None or run.waiting is None or run.waiting.ask != event.ask:
        return state
    waiting, run = run.waiting, replace(run, waiting=None)
    if event.failure is Failure.OVERFLOW:
        state = overflowed(state, run, waiting, event)
        evidence = replace(run.evidence, overflows=run.evidence.overflows + 1)
        run = replace(run, evidence=evidence)
    if waiting.purpose is Purpose.SUMMARISE:  # the digest will do
        return replace(state, run=replace(run, summarised=True))
    if waiting.purpose is Purpose.WORK and event.failure is Failure.OVERFLOW:
        return replace(state, run=replace(run, summarised=True))
    detail = digest(event.detail, 400)
    how = HOW_IT_FAILED[event.failure] + (f": {detail}" if detail else ".")
    return replace(state, run=replace(run, failed=how))


def overflowed(state: State, run: Run, waiting: Waiting, event: ModelFailed) -> State:
    """What a refusal teaches: the window, the size of the request, or at least its lower bound."""
    if event.window and event.window >= SMALLEST_WINDOW:
        state = replace(state, window=min(event.window, state.window or event.window))
    gauge = state.gauge.learn(waiting.size, event.tokens) if event.tokens else state.gauge
    most = window_of(state, run) - run.settings.budget.output
    if gauge.expect(waiting.size).safe <= most:
        gauge = gauge.refused(waiting.size, most)
    return replace(state, gauge=gauge)


# --- the tools ------------------------------------------------------------------------------


def decided(state: State, event: Decided) -> State:
    """What a person or a rule said of a call, and what it means for the calls to come."""
    if event.grants:
        granted = (*(rule for rule in state.granted if rule != event.grants), event.grants)
        state = replace(state, granted=granted[-MOST_GRANTS:])
    return with_open(state, event.call_id, lambda each: judged(each, event))


def judged(each: OpenCall, event: Decided) -> OpenCall:
    """A call with other arguments is another call: its print changes with it, and the model will
    be shown what really ran."""
    try:
        given = json_object(event.arguments)
    except ValueError:
        return replace(each, verdict=event.verdict)
    call = replace(each.call, arguments=dumped(given))
    print_ = fingerprint(call.name, dumped(given, sort_keys=True))
    return replace(each, verdict=event.verdict, call=call, fingerprint=print_)


def started(state: State, event: ToolStarted) -> State:
    return with_open(state, event.call_id, lambda each: replace(each, started=True))


def admitted(state: State, event: CallsAdmitted) -> State:
    for call_id in event.call_ids:
        state = with_open(state, call_id, lambda each: replace(each, admitted=True))
    return state


def with_open(state: State, call_id: str, change: Callable[[OpenCall], OpenCall]) -> State:
    run = state.run
    if run is None or run.stopped:
        return state
    calls = tuple(change(each) if each.call.id == call_id else each for each in run.open)
    return replace(state, run=replace(run, open=calls))


def charged(state: State, event: Charged) -> State:
    """After a crash a call tells again what it has spent: only what is new is added. What comes
    when the call is over is added too, and so is on the bill of the run that asked for it."""
    run = state.run
    if run is None:
        return state
    usage = event.usage
    for each in run.unanswered:
        if each.call.id == event.call_id:
            usage = more_than(each.charged, usage)
            state = with_open(state, event.call_id, lambda each: replace(each, charged=event.usage))
    run = state.run or run
    return replace(state, run=replace(run, spent=run.spent.adding(usage)))


def more_than(before: Usage, now: Usage) -> Usage:
    return Usage(
        prompt=now.prompt - before.prompt,
        completion=now.completion - before.completion,
        cached=now.cached - before.cached,
        cost=now.cost - before.cost,
    )


def finished(state: State, event: ToolFinished) -> State:
    run = state.run
    if run is None:
        return state
    each = next((one for one in run.unanswered if one.call.id == event.call_id), None)
    if each is None:
        return finished_late(state, run, event)
    record = Record(
        each.call.id,
        each.call.name,
        digest_arguments(each.call.arguments, 300),
        event.outcome,
        first_words(event.text),
        changed=each.tool is not None and each.tool.mutates,
        names=tuple(sorted(names_in(each.call.arguments[:NAMED]))),
    )
    done = answered(each, event, run)
    run = replace(
        run,
        open=tuple(done if one is each else one for one in run.open),
        ledger=run.ledger.adding(record),
        spent=replace(run.spent, calls=run.spent.calls + 1),
    )
    return replace(state, run=run) if run.unanswered else closed_round(state, run)


def finished_late(state: State, run: Run, event: ToolFinished) -> State:
    """A call that was given up came back after all: the ledger is put right, and the model will
    be told, since it was told otherwise."""
    if event.outcome not in (Outcome.DONE, Outcome.FAILED):
        return state  # that it was given up is known
    ledger = run.ledger.finished_late(event.call_id, event.outcome, event.text)
    if ledger is run.ledger and event.call_id not in state.abandoned:
        return state
    note = Note(
        f"{LATE}{event.call_id} has finished after all ({event.outcome.value}): "
        f"{cut(clean(event.text), run.settings.caps.line)}]"
    )
    return replace(
        state,
        history=state.history.saying(note),
        abandoned=tuple(call for call in state.abandoned if call != event.call_id),
        run=replace(run, ledger=ledger),
    )


def answered(each: OpenCall, event: ToolFinished, run: Run) -> OpenCall:
    """The call with its result, as the model will see it: cut, and with a word on repeats."""
    whole = clean(event.text)
    more = ""
    if any(one.name == READ_RESULT for one in run.usable):
        more = f'{READ_RESULT}(call_id="{each.call.id}") reads the rest'
    cap, keep = run.settings.cap_of(each.tool), each.tool.keep if each.tool else Keep.HEAD
    text = cut(whole, cap, keep, more)
    came, last = fingerprint(whole), guards.last_result(run.evidence, each.fingerprint)
    if event.outcome is Outcome.NOT_RUN and last is not None:
        came = last  # what was not run again brought nothing new
    times = guards.repeats(run.evidence, each.fingerprint, each.tool) if came == last else 1
    twins = sum(one.fingerprint == each.fingerprint and one.came == came for one in run.open)
    if event.outcome is not Outcome.NOT_RUN and not (each.tool and each.tool.polls):
        text += guards.repeated(times + twins, run.settings.patience)
    failed = event.outcome is not Outcome.DONE
    message = ToolMessage(each.call.id, each.call.name, text or "(no output)", failed)
    return replace(
        each, result=message, length=len(whole), outcome=event.outcome, came=came, times=times
    )


def closed_round(state: State, run: Run) -> State:
    """All calls are answered: the round enters the history, and the guards remember it."""
    assert run.reply is not None
    entries = list(closed(run.reply, run.open, run.settings.caps))
    first = len(state.history.body)
    whole = tuple(
        (each.tool.name, first + 1 + place)
        for place, each in enumerate(run.open)
        if each.tool and each.tool.keep_last is not None
    )
    history = state.history.with_entries(entries)
    history = replace(history, whole=history.whole + whole) if whole else history
    evidence = guards.remember(run.evidence, tuple(map(deed, run.open)))
    called = {each.call.name for each in run.open}
    shelved = tuple(name for name in run.shelved if name not in called)
    if shelved != run.shelved:
        run = run.offering(shelved=shelved)
    run = replace(run, open=(), reply=None, evidence=evidence, parts=())
    return replace(state, history=history, run=run)


def deed(each: OpenCall) -> Deed:
    return Deed(
        id=each.call.id,
        tool=each.call.name,
        call=each.fingerprint,
        result=each.came,
        failed=each.outcome is not Outcome.DONE,
        ran=each.outcome is not Outcome.NOT_RUN,
        mutates=each.tool is not None and each.tool.mutates,
        polls=each.tool is not None and each.tool.polls,
        exists=each.tool is not None,
        times=each.times,
    )
