"""The one thread that writes to a journal: it takes whatever waits and commits it at once.

A commit waits for the disk, and costs the same for one append as for a hundred, so a hundred
sessions share it. Whoever appends does not wait here at all; whoever must know that something is
on disk waits for a `Promise`, in any event loop.
"""

import sqlite3
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

import anyio
from anyio.lowlevel import EventLoopToken, current_token

from holdfast.journal.base import JournalError

T = TypeVar("T")

MOST = 1_000
"""Pieces of work in one commit, so that the first of them need not wait for ever."""
LINGER = 0.01
"""Seconds that work for which nobody waits may wait for company."""
LOOKS = 10
"""How often it looks for work, and finds none, before it does what can wait and falls asleep."""


class Promise(Generic[T]):
    """Something that will be on disk, and what came of it."""

    __slots__ = ("_waiting", "done", "error", "hurry", "value")

    def __init__(self) -> None:
        self.done = False
        self.hurry: threading.Event | None = None
        """Tells the writer that somebody waits."""
        self.error: BaseException | None = None
        self.value: T | None = None
        self._waiting: list[tuple[EventLoopToken, anyio.Event]] = []

    async def wait(self) -> None:
        await self.result()

    async def result(self) -> T:
        if not self.done:
            came = anyio.Event()
            self._waiting.append((current_token(), came))
            if self.hurry is not None:
                self.hurry.set()
            # The writer sets `done` before it looks who is waiting, so one of us sees the other.
            if not self.done:
                await came.wait()
        if self.error is not None:
            raise again(self.error)
        return self.value  # type: ignore[return-value]

    def waiting(self) -> list[tuple[EventLoopToken, anyio.Event]]:
        self.done = True
        return self._waiting


def again(error: BaseException) -> BaseException:
    """The same error as a new object: each who waits gets a traceback of their own."""
    if not isinstance(error, JournalError):
        return error
    fresh = type(error)(*error.args)
    fresh.__cause__ = error.__cause__
    return fresh


class Work(Protocol):
    """A piece of work for the writer. It runs inside a transaction."""

    promise: Promise[Any]

    def do(self, db: sqlite3.Connection) -> None:
        """A `JournalError` is its own; a `sqlite3.Error` is everybody's in the same commit."""

    @property
    def joins(self) -> object | None:
        """Pieces for the same object can be done as one; None for one that stands alone."""

    def take(self, later: Any) -> None:
        """Make a later piece for the same object a part of this one."""

    def failed(self, error: JournalError) -> None:
        """The transaction it was in did not come about."""


class Call(Generic[T]):
    """Work that is one function; what it changed is undone alone if it raises."""

    def __init__(self, function: Callable[[sqlite3.Connection], T]) -> None:
        self.promise: Promise[T] = Promise()
        self._function = function

    def do(self, db: sqlite3.Connection) -> None:
        db.execute("savepoint call")
        try:
            self.promise.value = self._function(db)
        except sqlite3.Error:
            raise
        except Exception as wrong:
            db.execute("rollback to call")
            self.promise.error = wrong
        db.execute("release call")

    @property
    def joins(self) -> None:
        return None

    def take(self, later: object) -> None:
        raise TypeError("this work stands alone")

    def failed(self, error: JournalError) -> None:
        self.promise.error = error


class Writer:
    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        sentence: Callable[[BaseException], str],
        *,
        idly: Callable[[sqlite3.Connection], None],
        beat: Callable[[sqlite3.Connection], None],
        pause: float,
    ) -> None:
        """`idly` is for what can wait until nothing else does, `beat` for a sign of life every
        `pause` seconds. An error in either is nobody's loss."""
        self._connect = connect
        self._sentence = sentence
        self._idly = idly
        self._beat = beat
        self._pause = pause
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._hurry = threading.Event()
        self._beaten = monotonic()
        self._thread = threading.Thread(target=self._run, name="holdfast-journal", daemon=True)
        self._thread.start()

    def put(self, work: Work) -> None:
        work.promise.hurry = self._hurry
        self._queue.put(work)

    def stop(self) -> None:
        """Waits until everything is written."""
        self._queue.put(None)
        self._hurry.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            db = self._connect()
        except Exception as wrong:  # whatever it is, nobody must wait for ever
            self._refuse(self._error(wrong))
            return
        try:
            while self._turn(db):
                pass
        finally:
            db.close()

    def _refuse(self, wrong: JournalError) -> None:
        """There is no journal: nothing can be written until this object is closed."""
        while (work := self._queue.get()) is not None:
            work.failed(wrong)
            tell([work])

    def _turn(self, db: sqlite3.Connection) -> bool:
        """One commit, or one idle moment; False at the end."""
        try:
            first = self._next()
        except Empty:
            self._quietly(db, self._idly)
            try:
                first = self._queue.get(timeout=self._pause)
            except Empty:
                self._quietly(db, self._beat)
                return True
        batch = self._batch(first)
        work = [each for each in batch if each is not None]
        if work:
            self._commit(db, work)
            tell(work)
        if monotonic() - self._beaten > self._pause:  # also when there is always work
            self._beaten = monotonic()
            self._quietly(db, self._beat)
        if len(work) < len(batch):
            self._quietly(db, self._idly)
            return False
        return True

    def _next(self) -> Work | None:
        """Looks for work now and then, as long as there was some lately. It is not woken by each
        piece: to wake a thread costs more than most of them, and for most of them nobody waits."""
        for _ in range(LOOKS):
            self._hurry.wait(LINGER)
            self._hurry.clear()
            if not self._queue.empty():
                break
        return self._queue.get_nowait()

    def _batch(self, first: Work | None) -> list[Work | None]:
        batch = [first]
        while batch[-1] is not None and len(batch) < MOST:
            try:
                batch.append(self._queue.get_nowait())
            except Empty:
                break
        return batch

    def _commit(self, db: sqlite3.Connection, batch: list[Work]) -> None:
        try:
            db.execute("begin immediate")
            for work in joined(batch):
                work.do(db)
            db.execute("commit")
        except Exception as wrong:
            roll_back(db)
            error = self._error(wrong)
            for work in batch:
                work.failed(error)

    def _error(self, wrong: Exception) -> JournalError:
        if isinstance(wrong, JournalError):
            return wrong
        error = JournalError(self._sentence(wrong))
        error.__cause__ = wrong
        return error

    def _quietly(self, db: sqlite3.Connection, what: Callable[[sqlite3.Connection], None]) -> None:
        try:
            what(db)
        except sqlite3.Error:
            roll_back(db)


def joined(batch: list[Work]) -> list[Work]:
    """The same work in fewer pieces: appends to one session are one. Nothing moves before work of
    another kind, such as giving the session up."""
    pieces: list[Work] = []
    open_pieces: dict[object, Work] = {}
    for work in batch:
        if work.joins is None:
            open_pieces.clear()
            pieces.append(work)
        elif (piece := open_pieces.setdefault(work.joins, work)) is work:
            pieces.append(work)
        else:
            piece.take(work)
    return pieces


def roll_back(db: sqlite3.Connection) -> None:
    try:
        if db.in_transaction:
            db.execute("rollback")
    except sqlite3.Error:  # the disk is gone; the next commit will say so
        pass


def tell(batch: list[Work]) -> None:
    """Wake whoever waits: each event loop once, however many wait in it."""
    loops: dict[Any, tuple[EventLoopToken, list[anyio.Event]]] = {}
    for work in batch:
        for token, came in work.promise.waiting():
            loops.setdefault(id(token.native_token), (token, []))[1].append(came)
    for token, events in loops.values():
        wake(token, events)


def wake(token: EventLoopToken, events: list[anyio.Event]) -> None:
    """Without waiting for the loop, as `anyio.from_thread` would: the disk should not stand still
    because a loop is busy."""

    def set_all() -> None:
        for event in events:
            event.set()

    loop: Any = token.native_token
    soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
    try:
        soon(set_all)
    except RuntimeError:  # the loop has ended, and with it whoever waited
        pass
