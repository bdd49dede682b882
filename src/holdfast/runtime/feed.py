"""What watchers are told: stored events and passing pieces in, envelopes out.

A `Feed` is pure but for what it remembers, and one serves all watchers of a session. What comes of
a stored event is durable: folding the log again gives the same envelopes. What comes of pieces is
told once, and is never needed: an item that was told in deltas is told whole when it is done.
Every update is an upsert by `id`; fields that are left out keep their value.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

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
)
from holdfast.core.fold import evolve
from holdfast.core.limits import StopReason
from holdfast.core.state import NEW, Run, State
from holdfast.models.base import Piece, Reading, Said, TakenBack, Thought, Waiting
from holdfast.runtime import told
from holdfast.runtime.bus import Answered, Passing
from holdfast.runtime.envelope import STOP_REASONS, Envelope, duration, number, usage
from holdfast.tools.base import Form, Progress
from holdfast.tools.door import Question

Told = tuple[str, Mapping[str, object]]
"""The type of an envelope, and what is in it."""


class Feed:
    def __init__(
        self,
        session: str,
        state: State = NEW,
        *,
        seq: int = 0,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        """`state` and `seq`: where a log is taken up that others have been told of.
        `kinds`: what kind of thing each tool does; without it, `read` or `other`."""
        self._session = session
        self._state = state
        self._seq = seq
        self._kinds = kinds or {}
        self._open: dict[str, str] = {}
        """Items of the reply that is on its way, and their types: begun in pieces, not done."""
        self._tries = 0

    # --- stored events --------------------------------------------------------------------------

    def stored(self, seq: int, event: Event) -> list[Envelope]:
        """What is told of the next event.

        All envelopes of an event have its number. Whoever resumes by number must therefore be
        sent all of them, or none."""
        # Folded here, since what a model is shown of a result, and what is in the window, are
        # known only after each event. It takes about a tenth of a millisecond.
        before, state = self._state, evolve(self._state, event)
        self._state, self._seq = state, seq
        at = getattr(event, "at", None) or state.now or 0.0
        durable: list[Told] = [("thread.started", {})] if seq == 1 else []
        durable += told_of(seq, event, before, state, self._kinds)
        done = {item_id(body) for kind, body in durable if kind == "item.completed"}
        void = list(self._voided(done)) if told.waiting(before) != told.waiting(state) else []
        return [
            *(self._envelope(at, kind, body, durable=False) for kind, body in void),
            *(self._envelope(at, kind, body, durable=True) for kind, body in durable),
        ]

    def _voided(self, done: set[str]) -> Iterator[Told]:
        """What was told of a reply that came to nothing, or had no such part in the end."""
        for item, kind in self._open.items():
            if item not in done:
                yield "item.completed", {"item": told.void(item, kind)}
        self._open.clear()
        self._tries = 0

    # --- what passes ----------------------------------------------------------------------------

    def passing(self, passing: Passing, at: float) -> list[Envelope]:
        """What is told of something that is in no log."""
        match passing.what:
            case Progress():
                return self._progress(passing.call_id, passing.what, at)
            case Question():
                return [self._passing(at, "approval.requested", **told.question(passing.what))]
            case Form(message, schema, url):
                asks = {"message": message, "schema": schema, "url": url}
                return [self._passing(at, "input.requested", id=passing.call_id, **asks)]
            case Answered(call_id):
                return [self._passing(at, "question.closed", id=call_id)]
            case _:
                return self._piece(passing.what, at)

    def _piece(self, piece: Piece, at: float) -> list[Envelope]:
        """A piece of the reply that is on its way. Of one nobody waits for nothing is told."""
        waiting = told.waiting(self._state)
        if waiting is None:
            return []
        ask = waiting.ask
        match piece:
            case Said(text):
                kind = told.message_kind(waiting.purpose)
                return self._delta(f"m{ask}", kind, text, {}, at)
            case Thought(text, field):
                return self._delta(f"r{ask}", "reasoning", text, {"field": field}, at)
            case TakenBack(why):
                back = [told.begun(item, kind) | {"why": why} for item, kind in self._open.items()]
                return [self._passing(at, "item.updated", item=item) for item in back]
            case Reading(done, of):
                return [self._passing(at, "step.reading", step=ask, done=done, of=of)]
            case Waiting(why, seconds, model):
                self._tries += 1
                delay = round((number(seconds) or 0) * 1000)
                body = {"attempt": self._tries, "delay_ms": delay, "reason": why, "model": model}
                return [self._passing(at, "step.retry", step=ask, **body)]
            case _:
                assert_never(piece)

    def _delta(
        self, item: str, kind: str, text: str, more: Mapping[str, object], at: float
    ) -> list[Envelope]:
        first: list[Envelope] = []
        if item not in self._open:
            self._open[item] = kind
            first = [self._passing(at, "item.started", item={**told.begun(item, kind), **more})]
        return [*first, self._passing(at, "item.delta", id=item, text=text)]

    def _progress(self, call_id: str, progress: Progress, at: float) -> list[Envelope]:
        """How far a call has come. Of one that is over nothing is told."""
        if told.open_call(self._state, call_id) is None:
            return []
        far = {"text": progress.text, "done": number(progress.done), "of": number(progress.of)}
        item = {"id": call_id, "type": "tool_call", "status": "in_progress", "progress": far}
        return [self._passing(at, "item.updated", item=item)]

    def server(self, model: str, at: float, *, up: bool, loading: bool = False) -> Envelope:
        return self._passing(at, "server.status", model=model, up=up, loading=loading)

    def task(
        self, number: int, status: str, at: float, *, text: str = "", session: str = ""
    ) -> Envelope:
        """A run in the background; `status` is `started`, `updated` or `completed`."""
        return self._passing(at, f"task.{status}", id=f"k{number}", text=text, runs_in=session)

    def warning(self, about: str, detail: str, at: float) -> Envelope:
        """Something that is in no log: a watcher fell behind, a server of tools is gone."""
        return self._passing(at, "warning", about=about, detail=detail)

    def error(self, detail: str, at: float) -> Envelope:
        """Nothing more comes: the session cannot be written, or the program has a mistake."""
        return self._passing(at, "error", detail=detail)

    # --- envelopes ------------------------------------------------------------------------------

    def _passing(self, at: float, kind: str, **body: object) -> Envelope:
        return self._envelope(at, kind, body, durable=False)

    def _envelope(
        self, at: float, kind: str, body: Mapping[str, object], *, durable: bool
    ) -> Envelope:
        run = self._state.run
        return Envelope(
            seq=self._seq,
            at=at,
            session=self._session,
            turn=None if run is None else f"t{run.number}",
            type=kind,
            body=body,
            durable=durable,
        )


def replayed(session: str, events: Iterable[Event]) -> list[Envelope]:
    """What a whole log tells."""
    feed = Feed(session)
    return [each for seq, event in enumerate(events, 1) for each in feed.stored(seq, event)]


# --- what each event tells ----------------------------------------------------------------------


def told_of(
    seq: int, event: Event, before: State, after: State, kinds: Mapping[str, str]
) -> Iterator[Told]:
    match event:
        case UserSpoke():
            yield from spoken(seq, event, before, after)
        case FollowedUp():
            queued = before.run.queued if before.run else ()
            yield "turn.started", told.beginning("\n\n".join(queued), after)
        case Steered():
            yield "turn.steered", {"input": "\n\n".join(before.run.queued if before.run else ())}
        case ModelAsked():
            if event.purpose is Purpose.SUMMARISE:
                yield "compaction.started", {"step": event.ask}
            body = {"purpose": event.purpose.value, "expected_tokens": event.expected}
            yield "step.started", {"step": event.ask, **body}
            yield "context.updated", told.context(after, event.expected, "estimate")
        case ModelReplied():
            yield from told.replied(event, before, after, kinds)
        case ModelFailed():
            yield told.failed(event, before)
        case CallsAdmitted() | Waited():
            return  # each call tells itself when it starts or is answered
        case Decided():
            yield from decided(event, after, kinds)
        case ToolStarted(call_id):
            if told.open_call(after, call_id):
                item = {"id": call_id, "type": "tool_call", "status": "in_progress"}
                yield "item.updated", {"item": item}
        case ToolFinished():
            yield told.finished(event, before, after, kinds)
        case FileKept(call_id, path, blob, _, mode):
            kept: told.Item = {"call_id": call_id, "path": path, "blob": blob, "mode": mode}
            kept |= {"id": f"f{seq}", "type": "file_change", "status": "completed"}
            yield "item.completed", {"item": kept | {"existed": bool(blob)}}
        case FilesRestored(paths):
            yield "files.restored", {"paths": list(paths)}
        case Charged(call_id, spent):
            yield "usage.charged", {"call_id": call_id, "usage": told.used(spent)}
        case ToolsChanged(tools, shelved=shelved):
            names = [tool.name for tool in tools]
            yield "tools.changed", {"tools": names, "shelved": list(shelved)}
        case ToolsFound(found):
            yield "tools.found", {"tools": list(found)}
        case Pinned(key, text):
            yield "context.pinned", {"key": key, "text": text}
        case CancelAsked():
            yield "turn.cancelling", {}
        case TimeRanOut(run):
            yield "guard.warned", {"kind": "budget", "detail": f"The time of run {run} is up."}
        case Reopened():
            yield "thread.resumed", {}
        case Warned(About.STALE, text):
            yield "guard.warned", {"kind": "no_progress", "detail": text}
        case Warned(about, text):
            yield "warning", {"about": about.value, "detail": text}
        case TaskCut(to):
            detail = f"The message does not fit the window: the model is shown {to} characters."
            yield "warning", {"about": "task cut", "detail": detail, "to": to}
        case Nudged(why, text):
            yield "guard.warned", {"kind": why.value, "detail": text}
        case ToolDropped(tool):
            detail = f"The tool {tool} only failed, and is gone for the rest of the run."
            yield "guard.warned", {"kind": "tool dropped", "detail": detail, "tool": tool}
        case Evicted():
            yield "compaction.completed", told.evicted(event, before, after)
        case Summarised(text):
            yield "compaction.updated", {"summary": text}
        case EndDecided(reason, detail):
            stop = STOP_REASONS[reason]
            yield "guard.stopped", {"kind": stop, "reason": reason.value, "detail": detail}
        case RunStopped():
            yield stopped(event, after)
        case _:
            assert_never(event)


def spoken(seq: int, event: UserSpoke, before: State, after: State) -> Iterator[Told]:
    if after.runs > before.runs:
        yield "turn.started", told.beginning(event.text, after)
        return
    item = {"id": f"u{seq}", "type": "user_message", "status": "completed", "text": event.text}
    yield "item.completed", {"item": item}


def decided(event: Decided, after: State, kinds: Mapping[str, str]) -> Iterator[Told]:
    answer = told.answered(event)
    by = {"by": event.by, "by_user": event.by == USER, "words": event.words}
    yield "approval.resolved", {"id": event.call_id, "answer": answer, **by, "grants": event.grants}
    each = told.open_call(after, event.call_id)
    if event.arguments and each:
        yield "item.updated", {"item": told.called(each, kinds) | {"edited": True}}


def stopped(event: RunStopped, after: State) -> Told:
    run = after.run
    assert run is not None
    body: dict[str, object] = {
        "stop_reason": STOP_REASONS[event.reason],
        "reason": event.reason.value,
        "result": event.text,
        **bill(after, run),
    }
    if event.reason is StopReason.MODEL_FAILED:
        return "turn.failed", {"error": {"message": run.failed}, **body}
    return "turn.completed", body


def bill(state: State, run: Run) -> dict[str, object]:
    ledger = run.ledger
    counts = {
        "done": ledger.done,
        "failed": ledger.failed,
        "unknown": ledger.unknown,
        "not_run": ledger.not_run,
    }
    return {
        "usage": usage(run.spent),
        "cost_usd": run.spent.cost / 1e6,
        "steps": run.spent.rounds,
        "calls": counts,
        "duration_ms": duration(state, run),
    }


def item_id(body: Mapping[str, object]) -> str:
    item = body["item"]
    return str(item["id"]) if isinstance(item, dict) else ""
