"""Sessions in one SQLite file, for one machine: the journal that is there without setting it up.

Several processes may use the file, each session being open in one of them. Everything is written
by one thread (`writer`), many sessions in one commit; reading has connections of its own and
waits for nobody. The disk is made to confirm each commit (`synchronous="full"`): with "normal" a
power cut took up to three commits that had been confirmed to us, and a shared commit makes the
difference small. "normal" still survives the death of the process.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, TypeVar
from uuid import uuid4

from anyio import CancelScope, CapacityLimiter, to_thread

from holdfast.core.events import Event, RunStopped
from holdfast.core.machine import replay
from holdfast.core.messages import clean
from holdfast.core.state import NEW, State
from holdfast.journal import snapshots, store
from holdfast.journal.base import About, Hit, JournalError, Stored
from holdfast.journal.migrations import connect, reader, sentence
from holdfast.journal.owner import BEAT, LIVING, myself
from holdfast.journal.redact import Redactor
from holdfast.journal.rows import rows_of
from holdfast.journal.store import Claimed
from holdfast.journal.writer import Call, Promise, Writer, again

T = TypeVar("T")

REMEMBERED = 10_000
"""Events that were redacted and have not been appended yet; those of a run that was given up."""


class Redacts(Protocol):
    """Takes secrets out of an event; gives back the same object if there is none."""

    def event(self, event: Event) -> Event: ...


class SqliteJournal:
    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["full", "normal"] = "full",
        redact: Redacts | Literal[False] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is opened before the first use. `redact` takes secrets out of what is written;
        None: those that `Redactor` knows of, False: none."""
        if synchronous not in ("full", "normal"):
            raise ValueError(f"synchronous is 'full' or 'normal', not {synchronous!r}")
        self.path = Path(path)
        self.token = uuid4().hex
        self._synchronous = synchronous
        self._redact: Redacts | Literal[False] | None = redact
        self._clean: dict[int, Event] = {}
        self._clock = clock
        self._writer: Writer | None = None
        self._readers: list[sqlite3.Connection] = []
        self._limiter: CapacityLimiter | None = None
        self._books: dict[str, SqliteBook] = {}
        self._closed = False

    # --- sessions ---------------------------------------------------------------------------

    async def create(
        self,
        *,
        folder: str = "",
        model: str = "",
        title: str = "",
        parent: str = "",
        session: str = "",
        labels: tuple[tuple[str, str], ...] = (),
    ) -> "SqliteBook":
        now = self._clock()
        about = About(
            id=clean(session) or new_id(),
            title=title,
            folder=folder,
            model=model,
            parent=parent,
            labels=labels,
            began=now,
            changed=now,
        )

        def make(db: sqlite3.Connection) -> Claimed:
            if not store.exists(db, about.id):
                store.insert(db, about)
            return self._claim(db, about.id)

        return await self._opened(Call(make))

    async def open(self, session: str) -> "SqliteBook":
        return await self._opened(Call(lambda db: self._claim(db, clean(session))))

    def _claim(self, db: sqlite3.Connection, session: str) -> Claimed:
        now = self._clock()
        return store.claim(db, session, myself(self.token, now), now)

    async def _opened(self, claim: Call[Claimed]) -> "SqliteBook":
        self._enqueue(claim)
        try:
            claimed = await claim.promise.result()
            state = NEW
            if claimed.seq:
                state = await self._read(partial(folded, session=claimed.id))
        except BaseException:
            # Also when nobody waits any more: what was claimed meanwhile is given up again.
            self._enqueue(Call(lambda db: release(db, claim)))
            raise
        book = SqliteBook(self, claimed, state)
        self._books[claimed.id] = book
        return book

    async def about(self, session: str) -> About:
        return await self._read(lambda db: store.about(db, session, self._clock()))

    async def sessions(
        self, *, folder: str | None = None, parent: str | None = None, limit: int = 100
    ) -> list[About]:
        return await self._read(lambda db: store.sessions(db, folder, parent, limit, self._clock()))

    async def rename(self, session: str, title: str) -> None:
        await self._write(lambda db: store.rename(db, session, title))

    async def fork(self, session: str, upto: int | None = None) -> str:
        now = self._clock()
        old = await self.about(session)
        new = About(
            id=new_id(),
            title=old.title,
            folder=old.folder,
            model=old.model,
            parent=session,
            labels=old.labels,
            began=now,
            changed=now,
        )
        await self._write(lambda db: store.fork(db, session, upto, new))
        return new.id

    async def delete(self, session: str) -> None:
        await self._write(lambda db: store.delete(db, session, self._clock()))

    def redacted(self, event: Event) -> Event:
        """The event without its secrets. For a driver, before the loop sees it: what was taken out
        only on the way to the disk would still be in the state."""
        if self._redact is False:
            return event
        clean = self._redactor().event(event)
        if len(self._clean) > REMEMBERED:
            self._clean.clear()
        self._clean[id(clean)] = clean
        return clean

    def _redactor(self) -> Redacts:
        """Ours is made when it is first needed, so that it knows keys which were set till then."""
        if not self._redact:
            self._redact = Redactor()
        return self._redact

    def without_secrets(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """In the writer's thread; what a driver has had redacted is not looked at again."""
        if self._redact is False:
            return events
        known, look = self._clean, self._redactor().event
        return tuple(e if known.pop(id(e), None) is e else look(e) for e in events)

    # --- reading ----------------------------------------------------------------------------

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> list[Stored]:
        return await self._read(
            lambda db: store.read(db, session, store.number_of(db, session), after, limit)
        )

    async def blob(self, key: str) -> bytes:
        return await self._read(lambda db: store.blob(db, key))

    async def search(self, text: str, *, limit: int = 20) -> list[Hit]:
        return await self._read(lambda db: store.search(db, text, limit))

    # --- the thread that writes, and connections that read ------------------------------------

    async def _write(self, function: Callable[[sqlite3.Connection], T]) -> T:
        call = Call(function)
        self._enqueue(call)
        return await call.promise.result()

    def _enqueue(self, work: "Call[T] | Append") -> None:
        if self._closed:
            raise JournalError(f"the journal {self.path} has been closed.")
        if self._writer is None:
            LIVING.add(self.token)
            self._writer = Writer(
                lambda: connect(self.path, self._synchronous),
                partial(sentence, self.path),
                idly=self._keep_states,
                beat=self._beat,
                pause=BEAT,
            )
        self._writer.put(work)

    async def _read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        if self._writer is None:
            await self._write(lambda db: None)  # makes the file, or says why it cannot be read
        if self._limiter is None:
            self._limiter = CapacityLimiter(4)
        return await to_thread.run_sync(self._reading, function, limiter=self._limiter)

    def _reading(self, function: Callable[[sqlite3.Connection], T]) -> T:
        db = None
        try:
            db = self._readers.pop() if self._readers else reader(self.path)
            db.execute("begin")  # so that all of it is read at one moment
            return function(db)
        except sqlite3.Error as wrong:
            raise JournalError(sentence(self.path, wrong)) from wrong
        finally:
            if db is not None:
                if db.in_transaction:
                    db.execute("rollback")
                self._readers.append(db)

    def _keep_states(self, db: sqlite3.Connection) -> None:
        due = [book for book in list(self._books.values()) if book.due is not None]
        if not due:
            return
        db.execute("begin immediate")
        for book in due:
            book.keep_state(db)
        db.execute("commit")

    def _beat(self, db: sqlite3.Connection) -> None:
        if self._books:
            store.beat(db, [book.claimed for book in list(self._books.values())], self._clock())

    async def aclose(self) -> None:
        """Closes what is still open. Whatever was appended is on disk after this."""
        with CancelScope(shield=True):  # whoever is cancelled must not leave a thread behind
            await self._close()

    async def _close(self) -> None:
        if self._closed:
            return
        try:
            for book in list(self._books.values()):
                await book.close()
        finally:
            self._closed = True
            if self._writer is not None:
                await to_thread.run_sync(self._writer.stop)
            LIVING.discard(self.token)
            while self._readers:
                self._readers.pop().close()


def new_id() -> str:
    """Four groups of four: short enough to type, and never made twice."""
    random = uuid4().hex
    return "-".join(random[start : start + 4] for start in range(0, 16, 4))


def release(db: sqlite3.Connection, claim: Call[Claimed]) -> None:
    if claim.promise.value is not None:
        store.release(db, claim.promise.value)


def folded(db: sqlite3.Connection, session: str) -> State:
    """From the newest state that was kept, if there is one that counts."""
    n = store.number_of(db, session)
    (seq,) = db.execute("select seq from sessions where n = ?", (n,)).fetchone()
    after, state = snapshots.read(db, n, seq)
    return replay((stored.event for stored in store.read(db, session, n, after)), state)


class SqliteBook:
    def __init__(self, journal: SqliteJournal, claimed: Claimed, state: State) -> None:
        self.claimed = claimed
        self.due: tuple[int, State] | None = None
        """A state that is worth keeping, and the event it is after."""
        self._journal = journal
        self._state = state
        self._seq = claimed.seq
        self._error: JournalError | None = None
        self._kept = claimed.seq
        self._secret_seen = False

    @property
    def id(self) -> str:
        return self.claimed.id

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def state(self) -> State:
        return self._state

    def append(self, events: Sequence[Event], state: State) -> Promise[None]:
        if self._error is not None:
            raise again(self._error)
        work = Append(self, self._seq, tuple(events), state)
        self._journal._enqueue(work)
        self._seq += len(work.events)
        return work.promise

    async def keep(self, content: bytes) -> str:
        if self._error is not None:
            raise again(self._error)
        claimed = self.claimed
        return await self._journal._write(lambda db: store.keep(db, claimed, content))

    async def close(self) -> None:
        if self._journal._books.get(self.id) is not self:
            return
        claimed = self.claimed
        error = self._error

        def leave(db: sqlite3.Connection) -> None:
            self.keep_state(db)
            store.release(db, claimed)

        try:
            await self._journal._write(leave)
        finally:
            self._journal._books.pop(self.id, None)
            error = self._error
            self._error = self._error or JournalError(f"session '{self.id}' has been closed.")
        if error is not None:
            raise again(error)

    # --- in the writer's thread ---------------------------------------------------------------

    def write(self, db: sqlite3.Connection, work: "Append") -> None:
        if self._error is not None:
            raise again(self._error)
        events = self._without_secrets(work.events)
        store.append(db, self.claimed, work.after, rows_of(events), store.told(events))
        self._note_state(work)

    def poison(self, error: JournalError) -> None:
        """After an append that failed no other is taken: the log would have a gap."""
        self._error = self._error or error
        self.due = None

    def _without_secrets(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        clean = self._journal.without_secrets(events)
        self._secret_seen |= any(a is not b for a, b in zip(events, clean, strict=True))
        return clean

    def _note_state(self, work: "Append") -> None:
        if self._secret_seen:
            return  # the state still holds the secret that the log does not
        seq = work.after + len(work.events)
        ended = any(isinstance(event, RunStopped) for event in work.events)
        enough = snapshots.AFTER_A_RUN if ended else snapshots.OFTEN
        if seq - self._kept >= enough:
            self.due = seq, work.state

    def keep_state(self, db: sqlite3.Connection) -> None:
        if self.due is not None:
            (seq, state), self.due = self.due, None
            snapshots.write(db, self.claimed, seq, state)
            self._kept = seq


class Append:
    """Events on their way to the disk."""

    __slots__ = ("after", "book", "events", "promise", "state", "taken")

    def __init__(self, book: SqliteBook, after: int, events: tuple[Event, ...], state: State):
        self.book = book
        self.after = after
        self.events = events
        self.state = state
        self.promise: Promise[None] = Promise()
        self.taken: list[Append] = []

    def do(self, db: sqlite3.Connection) -> None:
        try:
            self.book.write(db, self)
        except JournalError as wrong:
            self.failed(wrong)

    @property
    def joins(self) -> SqliteBook:
        return self.book

    def take(self, later: "Append") -> None:
        self.events += later.events
        self.state = later.state
        self.taken.append(later)

    def failed(self, error: JournalError) -> None:
        self.book.poison(error)
        for each in (self, *self.taken):
            each.promise.error = error
