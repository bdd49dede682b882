"""The driver: performs what the machine owes, and tells it what came of it.

One driver works for one session. Whatever happens goes through `happen`: the machine makes its
step, the events are appended to the log, those who watch are shown them, and the work that the
machine owes is begun. That is all it decides; when to ask, what to run and when to stop is
decided in `core.machine`.

    happen(event) ──► step ──► append ──► publish ──► call the model, run the tools
        ▲                                                        │
        └──────────────── ModelReplied, ToolFinished ◄───────────┘
"""

import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from threading import get_ident
from typing import assert_never

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.abc import TaskGroup

from holdfast.core.effects import CallModel, RunTools, StopWork
from holdfast.core.events import (
    CancelAsked,
    Failure,
    FromTheWorld,
    ModelFailed,
    ModelReplied,
    Outcome,
    RunStopped,
    TimeRanOut,
    ToolFinished,
    ToolsChanged,
    UserSpoke,
    Waited,
)
from holdfast.core.limits import Settings
from holdfast.core.machine import Step, recover, replay, step
from holdfast.core.messages import ToolCall
from holdfast.core.state import Run, State
from holdfast.journal.base import Book, Journal, JournalError, Stored, Written
from holdfast.models.base import Model, ModelError, Piece
from holdfast.runtime.bus import PAGE, Bus, Passing
from holdfast.runtime.desk import Desk
from holdfast.runtime.hand import Hand
from holdfast.tools.base import Context, Filled, Form, Left, Progress, Tool
from holdfast.tools.detached import Spawn
from holdfast.tools.door import Answer, Question
from holdfast.tools.gateway import Gateway
from holdfast.tools.threads import in_thread

log = logging.getLogger("holdfast")

TO_CONCLUDE = 120.0
"""Seconds that a run whose time is up still has for its conclusion."""
WITHIN: ContextVar[frozenset[str]] = ContextVar("holdfast sessions", default=frozenset())
"""The sessions for whose runs the current task works, its own and those it works for."""
LOOK_AGAIN = 1.0
"""Seconds after which the alarm looks at the clock again, which stands while somebody is asked."""
LARGE = 256 * 1024
"""Characters of a result from which on it is looked through in a thread."""
TO_SAVE = 5.0
"""Seconds that a cancelled run may take to be written down."""


class Clock:
    """The time of day, which within one process never goes back."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._offset = wall() - time.monotonic()

    def __call__(self) -> float:
        return self._offset + time.monotonic()


class Broken(JournalError):
    """The session cannot be written any further, so it does not go on: what is not on disk did
    not happen. `stopped` is an answer that came and could not be saved."""

    def __init__(self, cause: JournalError, stopped: RunStopped | None = None) -> None:
        super().__init__(str(cause))
        self.stopped = stopped


@dataclass(slots=True, kw_only=True)
class Means:
    """What the sessions of one runtime work with."""

    journal: Journal
    model: Model
    gateway: Gateway
    workspace: Path
    clock: Callable[[], float] = field(default_factory=Clock)
    clean: Callable[[FromTheWorld], FromTheWorld] = lambda event: event
    """Takes secrets out of an event before anyone keeps it."""
    clean_text: Callable[[str], str] = lambda text: text
    """And out of a text that only passes by."""
    spawn: Spawn | None = None
    """Starts tasks that may outlive a run; the engine's."""


class Driver:
    """A session that is open here. Nothing runs until `run` or `resume` is called."""

    def __init__(self, book: Book, means: Means, desk: Desk | None = None) -> None:
        self.id = book.id
        self.state: State = book.state
        self.bus = Bus(self._read, book.seq)
        self.desk = desk or Desk()
        self._book = book
        self._means = means
        self._group: TaskGroup | None = None
        """Of the run that is under way; None between runs."""
        self._turn: anyio.Lock | None = None
        self._owed: CallModel | RunTools | None = None
        """What is to be done next."""
        self._work: anyio.CancelScope | None = None
        """Around what is being done, which the machine may call off."""
        self._news: anyio.Event | None = None
        self._written: Written | None = None
        self.worker = 0
        """The task that drives, as the event loop knows it; 0 if none does."""
        self._token: anyio.lowlevel.EventLoopToken | None = None
        self._thread = 0
        self._concluding: tuple[int, float] | None = None
        """The number of the run that is concluding, and until when it may."""

    # --- for those who use it -------------------------------------------------------------------

    async def run(self, text: str, settings: Settings) -> RunStopped:
        """Say it to the session, and work until there is an answer; while another run is under
        way, wait until it is this one's turn. In a session whose process died in the middle of a
        run, that run goes on and hears it, before anything else is done."""
        if self.id in WITHIN.get():
            raise RuntimeError(f"a tool of session {self.id} cannot wait for a run of the same one")
        async with self._my_turn():
            run = self._open_run
            if run is None:
                return await self._drive(lambda: self.happen(UserSpoke(text, self.now(), settings)))
            if not run.stopped:
                return await self._drive(await self._reopening(settings, text))
            reopen = await self._reopening(settings)  # for words that were said before these

            def begin() -> None:
                reopen()
                self.happen(UserSpoke(text, self.now()))

            return await self._drive(begin)

    async def resume(self, settings: Settings | None = None) -> RunStopped | None:
        """Go on with a run that another process left open; None if there is none. `settings`
        bring the tools there are now."""
        async with self._my_turn():
            if self._open_run is None:
                return None
            return await self._drive(await self._reopening(settings))

    def say(self, text: str) -> None:
        """Steer the run that is under way."""
        if self._group is None:
            raise RuntimeError(f"session {self.id} has no run under way that could hear it")
        self.happen(UserSpoke(text, self.now()))

    def cancel(self) -> None:
        """Stop the run that is under way, or one that a crash left open. The session can go on."""
        if self._open_run is not None:
            self.happen(CancelAsked(self.now()))

    @property
    def task(self) -> str:
        """What the user wants of the run."""
        return "\n".join(spoken.text for spoken in self.state.history.spoken)

    @property
    def is_working(self) -> bool:
        return self._group is not None

    @property
    def is_open(self) -> bool:
        """A run has not come to its end, whether somebody works on it or not."""
        return self._open_run is not None

    async def close(self) -> None:
        """Give the session up to others."""
        await self._book.close()

    # --- the loop -------------------------------------------------------------------------------

    def happen(self, event: FromTheWorld) -> Written:
        """Take in one fact."""
        return self._follow(step(self.state, self._means.clean(event)))

    def _follow(self, done: Step) -> Written:
        self.state = done.state
        self._written = self._book.append(done.events, done.state)
        self.bus.publish(done.events, self._written)
        for effect in done.effects:
            if isinstance(effect, StopWork):
                self._owed = None
                if self._work is not None:
                    self._work.cancel()
            else:
                self._owed = effect  # there is never more than one at a time
        if self._news is not None:
            self._news.set()
        return self._written

    async def _drive(self, begin: Callable[[], object]) -> RunStopped:
        within = WITHIN.set(WITHIN.get() | {self.id})
        try:
            self._token, self._thread = anyio.lowlevel.current_token(), get_ident()
            async with anyio.create_task_group() as group:
                self._group, self.worker = group, anyio.get_current_task().id
                begin()
                group.start_soon(self._alarm)
                await self._until_stopped()
                self._group = None  # whoever says something now is told that nobody hears it
                group.cancel_scope.cancel()  # the alarm is not wanted any longer
            await self._saved()
        except anyio.get_cancelled_exc_class():
            await self._give_up()
            raise
        except JournalError as error:
            raise Broken(error, self._stopped) from None
        except ExceptionGroup as several:
            cause = the_one(several)
            if isinstance(cause, JournalError):
                raise Broken(cause, self._stopped) from None
            raise cause from None
        finally:
            self._group = self._work = self._news = None
            self.worker = 0
            WITHIN.reset(within)
        assert self._stopped is not None
        return self._stopped

    def _my_turn(self) -> anyio.Lock:
        """Made when it is needed: most sessions of a program are idle, and should be small."""
        self._turn = self._turn or anyio.Lock()
        return self._turn

    async def _until_stopped(self) -> None:
        """Perform what is owed, one thing after the other, until nothing is left to do."""
        while self._open_run is not None:
            if self._owed is None:
                self._news = anyio.Event()
                await self._news.wait()
                continue
            effect, self._owed = self._owed, None
            with anyio.CancelScope() as self._work:
                await self._perform(effect)

    async def _perform(self, effect: CallModel | RunTools) -> None:
        match effect:
            case CallModel():
                self.happen(await self._answer(effect))
            case RunTools(calls):
                await self._run_tools(calls)
            case _:
                assert_never(effect)

    async def _alarm(self) -> None:
        """Rings when the time of the run is up, and again for its conclusion."""
        while (run := self._open_run) is not None:
            left = self._time_left()
            if left <= 0:
                self.happen(TimeRanOut(run.number, self.now()))
            # Somebody is asked, or an answer may have made the time longer: look again then.
            await anyio.sleep(min(left, LOOK_AGAIN) if left > 0 else 0)

    def _time_left(self) -> float:
        """Seconds until the alarm rings: for the end of the run, then for that of its conclusion.
        The time a person takes to answer is not counted."""
        run, now = self._open_run, self.now()
        if run is None or self.desk.is_waiting:
            return inf
        if run.ending is None:
            passed = self.state.elapsed - run.began + max(0.0, now - (self.state.now or now))
            return max(0.0, run.settings.limits.seconds - passed)
        if self._concluding is None or self._concluding[0] != run.number:
            self._concluding = (run.number, now + TO_CONCLUDE)
        return max(0.0, self._concluding[1] - now)

    async def _give_up(self) -> None:
        """The task that drives is itself cancelled: the run is, and that must be on disk."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(TO_SAVE):
            try:
                if self._open_run is not None:
                    self.happen(CancelAsked(self.now()))
                await self._saved()
            except JournalError as error:
                log.warning("a cancelled run could not be written down: %s", error)

    async def _reopening(self, settings: Settings | None, heard: str = "") -> Callable[[], None]:
        """What must be done before a run that was left open can go on."""
        run, at = self._open_run, self.state.now or self.now()
        known: list[FromTheWorld] = []
        for each in run.unanswered if run else ():
            if each.started and (output := await self._means.gateway.probe(each.call, self)):
                known.append(ToolFinished(each.call.id, Outcome.DONE, output.text, at))
        if run and settings and settings.tools != run.tools:
            known.append(ToolsChanged(settings.tools, at, settings.shelved))

        def reopen() -> None:
            if known:
                self._follow(Step(replay(known, self.state), tuple(known), ()))
            self._follow(recover(self.state, self.now(), heard=heard))

        return reopen

    @property
    def _open_run(self) -> Run | None:
        run = self.state.run
        return run if run and (not run.stopped or run.queued) else None

    @property
    def _stopped(self) -> RunStopped | None:
        return self.state.run.stopped if self.state.run else None

    async def _saved(self) -> None:
        if self._written is not None:
            await self._written.wait()

    async def _read(self, after: int, most: int) -> list[Stored]:
        await self._saved()
        return await self._means.journal.read(self.id, after, most)

    # --- the model ------------------------------------------------------------------------------

    async def _answer(self, effect: CallModel) -> FromTheWorld:
        ask, model = effect.ask, self._means.model
        try:
            got = await model.reply(effect.request, self._tell)
        except ModelError as error:
            return ModelFailed(
                ask, error.failure, error.detail, self.now(), error.window, error.tokens
            )
        except Exception as error:  # a bug of the client must not cost the user the run's work
            log.exception("%s raised what is no ModelError", model.name)
            return ModelFailed(ask, Failure.GARBLED, f"{type(error).__name__}: {error}", self.now())
        return ModelReplied(ask, got.reply, self.now(), got.usage, got.by, got.notes)

    def _tell(self, piece: Piece) -> None:
        self.bus.pass_by(Passing(piece))

    # --- the tools: what the gateway needs --------------------------------------------------------

    async def _run_tools(self, calls: tuple[ToolCall, ...]) -> None:
        run = self.state.run
        verdicts = {each.call.id: each.verdict for each in run.open if each.verdict} if run else {}
        await self._means.gateway.perform_all(calls, self, verdicts=verdicts)

    def now(self) -> float:
        return self._means.clock()

    @property
    def granted(self) -> tuple[str, ...]:
        return self.state.granted

    async def record(self, event: FromTheWorld, *, durable: bool = False) -> None:
        if isinstance(event, ToolFinished) and len(event.text) > LARGE:
            # To look for secrets in it takes long; nobody else should wait for that.
            clean = await in_thread(self._means.clean, event)
            written = self._follow(step(self.state, clean))
        else:
            written = self.happen(event)
        if durable:
            await written.wait()

    async def ask(self, question: Question) -> Answer:
        return await self.desk.ask(question, self.bus.pass_by)

    def tell_progress(self, progress: Progress, call_id: str) -> None:
        """From any thread: tools that block run in others."""
        shown = Passing(replace(progress, text=self._means.clean_text(progress.text)), call_id)
        if get_ident() == self._thread:
            self.bus.pass_by(shown)
        elif self._token is not None:
            with suppress(RuntimeError):  # the loop has ended, and nobody watches
                anyio.from_thread.run_sync(self.bus.pass_by, shown, token=self._token)

    async def keep_blob(self, data: bytes) -> str:
        return await self._book.keep(data)

    def spawn(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        if self._means.spawn is None:
            raise RuntimeError("tools need an engine that is up, and this one is not")
        self._means.spawn(work)

    def context(self, call: ToolCall, tool: Tool) -> Context:
        return Hand(self, call)

    # --- what tools may ask of the run ------------------------------------------------------------

    @property
    def workspace(self) -> Path:
        return self._means.workspace

    @property
    def left(self) -> Left:
        """What the run may still spend."""
        run = self.state.run
        assert run is not None
        limits, spent = run.settings.limits, run.spent
        return Left(
            rounds=max(0, limits.rounds - spent.rounds),
            calls=max(0, limits.calls - spent.calls),
            tokens=max(0, limits.tokens - spent.prompt - spent.completion),
            cost=max(0, limits.cost - spent.cost),
            seconds=max(0.0, limits.seconds - (self.state.elapsed - run.began)),
        )

    async def result(self, call_id: str) -> str | None:
        """The whole text of a result; the newest events are looked at first."""
        last = self.bus.seq
        while last > 0:
            first = max(0, last - PAGE)
            page = await self._read(first, last - first)
            for stored in reversed(page):
                if isinstance(stored.event, ToolFinished) and stored.event.call_id == call_id:
                    return stored.event.text
            last = first
        return None

    async def log(self) -> list[Stored]:
        """All events so far."""
        await self._saved()
        return await self._means.journal.read(self.id)

    async def blob(self, key: str) -> bytes:
        return await self._means.journal.blob(key)

    async def fill(self, form: Form) -> Filled:
        filled = await self.desk.fill(form, self.bus.pass_by)
        self.happen(Waited(self.now()))
        return filled


def the_one(several: ExceptionGroup[Exception]) -> Exception:
    """What went wrong, out of the groups around it: the journal's word counts most."""
    journal, others = several.split(JournalError)
    error: Exception = journal or others or several
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
