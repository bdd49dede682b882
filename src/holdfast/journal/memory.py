"""Sessions that are gone when the process is: for tests, and for who wants nothing kept.

It keeps the contract of every journal, with a `Shelf` in the place of the disk. Two journals on one
shelf are like two processes on one file.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import uuid4

from holdfast.core.events import Event
from holdfast.core.machine import replay
from holdfast.core.messages import clean
from holdfast.core.state import NEW, State
from holdfast.journal import searching
from holdfast.journal.base import About, Busy, Hit, JournalError, Stored
from holdfast.journal.redact import Redactor
from holdfast.journal.rows import key_of
from holdfast.journal.store import fenced, missing, status_after, told


@dataclass
class Kept:
    """One session."""

    about: About
    log: list[Event] = field(default_factory=list)
    epoch: int = 0
    owner: str = ""
    """The token of the journal that has it open."""
    uses: set[str] = field(default_factory=set)


@dataclass
class Shelf:
    sessions: dict[str, Kept] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    living: set[str] = field(default_factory=set)
    """Tokens of the journals that are open."""


class Done:
    """Nothing has to be waited for."""

    async def wait(self) -> None:
        return None


class Lost:
    def __init__(self, error: JournalError) -> None:
        self.error = error

    async def wait(self) -> None:
        raise self.error


class MemoryJournal:
    def __init__(
        self,
        shelf: Shelf | None = None,
        *,
        redact: Redactor | Literal[False] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.token = uuid4().hex
        self._shelf = Shelf() if shelf is None else shelf
        self._shelf.living.add(self.token)
        self._redact: Redactor | Literal[False] = Redactor() if redact is None else redact
        self._clock = clock
        self._books: dict[str, MemoryBook] = {}

    async def create(
        self,
        *,
        folder: str = "",
        model: str = "",
        title: str = "",
        parent: str = "",
        session: str = "",
        labels: tuple[tuple[str, str], ...] = (),
    ) -> "MemoryBook":
        name = clean(session) or new_id()
        if name not in self._shelf.sessions:
            now = self._clock()
            about = About(
                id=name,
                title=clean(title),
                folder=clean(folder),
                model=clean(model),
                parent=clean(parent),
                labels=labels,
                began=now,
                changed=now,
            )
            self._shelf.sessions[name] = Kept(about)
        return await self.open(name)

    async def open(self, session: str) -> "MemoryBook":
        self._refuse_if_closed()
        kept = self._kept(session)
        self._refuse_if_open(kept)
        kept.epoch += 1
        kept.owner = self.token
        book = MemoryBook(self, kept)
        self._books[kept.about.id] = book
        return book

    def redacted(self, event: Event) -> Event:
        return self._redact.event(event) if self._redact else event

    async def read(self, session: str, after: int = 0, limit: int | None = None) -> list[Stored]:
        log = self._kept(session).log
        last = len(log) if limit is None else after + max(0, limit)
        return [Stored(seq, event) for seq, event in enumerate(log, 1) if after < seq <= last]

    async def blob(self, key: str) -> bytes:
        if key not in self._shelf.blobs:
            raise JournalError(f"the journal holds nothing under the key '{key}'.")
        return self._shelf.blobs[key]

    async def about(self, session: str) -> About:
        return self._about(self._kept(session))

    async def sessions(
        self, *, folder: str | None = None, parent: str | None = None, limit: int = 100
    ) -> list[About]:
        newest_first = reversed(self._shelf.sessions.values())
        found = [
            self._about(kept)
            for kept in newest_first
            if folder in (None, kept.about.folder) and parent in (None, kept.about.parent)
        ]
        found.sort(key=lambda about: about.changed, reverse=True)
        return found[: max(0, limit)]

    async def search(self, text: str, *, limit: int = 20) -> list[Hit]:
        words = searching.plain_words(text)
        hits = []
        for kept in self._shelf.sessions.values() if words else ():
            for seq, event in enumerate(kept.log, 1):
                if marked := searching.marked(searching.said(event), words):
                    hits.append(Hit(kept.about.id, seq, marked))
                    break
        return hits[: max(0, limit)]

    async def rename(self, session: str, title: str) -> None:
        kept = self._kept(session)
        kept.about = replace(kept.about, title=clean(title))

    async def fork(self, session: str, upto: int | None = None) -> str:
        kept = self._kept(session)
        last = len(kept.log) if upto is None else upto
        if not 0 <= last <= len(kept.log):
            raise JournalError(
                f"session '{session}' has {len(kept.log)} events; it has no event {last}."
            )
        now = self._clock()
        log = kept.log[:last]
        statuses = [status for status in map(status_after, log) if status]
        about = replace(
            kept.about,
            id=new_id(),
            parent=kept.about.id,
            began=now,
            changed=now,
            status=statuses[-1] if statuses else "",
        )
        self._shelf.sessions[about.id] = Kept(about, log, uses=set(kept.uses))
        return about.id

    async def delete(self, session: str) -> None:
        kept = self._kept(session)
        self._refuse_if_open(kept)
        del self._shelf.sessions[kept.about.id]
        kept.epoch += 1  # whoever had it, and died, has nothing to write to any more
        used = {key for each in self._shelf.sessions.values() for key in each.uses}
        for key in kept.uses - used:
            del self._shelf.blobs[key]

    async def aclose(self) -> None:
        for book in list(self._books.values()):
            await book.close()
        self._shelf.living.discard(self.token)

    def _kept(self, session: str) -> Kept:
        found = self._shelf.sessions.get(clean(session))
        if found is None:
            raise missing(session, self._shelf.sessions)
        return found

    def _about(self, kept: Kept) -> About:
        owner = "this process" if kept.owner in self._shelf.living else ""
        return replace(kept.about, events=len(kept.log), owner=owner)

    def _refuse_if_open(self, kept: Kept) -> None:
        if kept.owner in self._shelf.living:
            raise Busy(
                f"session '{kept.about.id}' is open in this process. Close it, or fork the session."
            )

    def _refuse_if_closed(self) -> None:
        if self.token not in self._shelf.living:
            raise JournalError("this journal has been closed.")


class MemoryBook:
    def __init__(self, journal: MemoryJournal, kept: Kept) -> None:
        self._journal = journal
        self._kept = kept
        self._epoch = kept.epoch
        self._state = replay(kept.log)
        self._seq = len(kept.log)
        self._error: JournalError | None = None

    @property
    def id(self) -> str:
        return self._kept.about.id

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def state(self) -> State:
        return self._state

    def append(self, events: Sequence[Event], state: State = NEW) -> Done | Lost:
        if self._error is not None:
            raise self._error
        kept = self._kept
        self._seq += len(events)
        if kept.epoch != self._epoch:
            self._error = fenced(self.id)
            return Lost(self._error)
        kept.log.extend(map(self._journal.redacted, events))
        tells = told(events)
        kept.about = replace(
            kept.about,
            changed=max(kept.about.changed, tells.at),
            status=tells.status or kept.about.status,
            title=kept.about.title or tells.title,
        )
        return Done()

    async def keep(self, content: bytes) -> str:
        if self._error is None and self._kept.epoch != self._epoch:
            raise fenced(self.id)
        if self._error is not None:
            raise self._error
        key = key_of(content)
        self._journal._shelf.blobs[key] = content
        self._kept.uses.add(key)
        return key

    async def close(self) -> None:
        if self._journal._books.get(self.id) is not self:
            return
        del self._journal._books[self.id]
        if self._kept.epoch == self._epoch:
            self._kept.owner = ""
        error, self._error = self._error, JournalError(f"session '{self.id}' has been closed.")
        if error is not None:
            raise error


def new_id() -> str:
    return uuid4().hex
