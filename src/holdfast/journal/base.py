"""What is remembered: one seam for every place a session can be kept.

A journal holds sessions, a session is a log of events, and a log only grows. Whoever wants to
write opens the session first and gets a `Book`; there is one at a time, and one that was taken
over can never write again. Reading takes no lock, and runs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.core.events import Event
from holdfast.core.state import State


class JournalError(Exception):
    """The world's mistake, in a sentence: a full disk, a file that is not a journal."""


class Busy(JournalError):
    """Somebody else has the session open."""


class Fenced(JournalError):
    """Somebody else has taken the session over: what was to be written does not count."""


class NoSuchSession(JournalError):
    """There is no session with this id; the sentence names some that are close."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An event and its place in the log of its session: 1, 2, 3 and so on, without a gap."""

    seq: int
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is known of a session without reading its log."""

    id: str
    title: str = ""
    """Given by the user, or the beginning of the first message."""
    folder: str = ""
    """The workspace it was begun in."""
    model: str = ""
    began: float = 0.0
    changed: float = 0.0
    """Unix seconds, of its last event."""
    events: int = 0
    parent: str = ""
    """The session it was forked from or is a part of; else empty."""
    status: str = ""
    """`running` if a run has not come to its end, the stop reason of the last run otherwise."""
    owner: str = ""
    """Who has it open, in words; empty if nobody."""
    labels: tuple[tuple[str, str], ...] = field(default=())
    """Whatever the application wants to find it by."""


class Written(Protocol):
    """The promise that something will be on disk."""

    async def wait(self) -> None:
        """Until it is; a `JournalError` if it will not be."""


class Book(Protocol):
    """A session, opened for writing by this process and no other."""

    @property
    def id(self) -> str: ...
    @property
    def seq(self) -> int:
        """Of the last event that was appended; 0 in a new session."""

    @property
    def state(self) -> State:
        """The fold of what was on disk when the book was opened."""

    def append(self, events: Sequence[Event], state: State) -> Written:
        """Write these next, all or none. Returns at once; appends are written in their order, and
        after one that failed no other is taken. `state` is the one after them: a journal may keep
        it, so that a long session need not be folded again from its beginning."""

    async def keep(self, content: bytes) -> str:
        """Store a blob, once, and return its key. On disk when it returns."""

    async def close(self) -> None:
        """Give the session up. Whatever was appended is on disk after this, or it raises."""


class Journal(Protocol):
    async def create(
        self,
        *,
        folder: str = "",
        model: str = "",
        title: str = "",
        parent: str = "",
        session: str = "",
        labels: tuple[tuple[str, str], ...] = (),
    ) -> Book:
        """A new session. With the name of one that exists already, that one is opened."""

    async def open(self, session: str) -> Book:
        """`Busy` if somebody else has it; a process that died has nothing."""

    async def read(
        self, session: str, after: int = 0, limit: int | None = None
    ) -> list[Stored]: ...

    async def blob(self, key: str) -> bytes: ...

    async def about(self, session: str) -> About: ...

    async def sessions(
        self, *, folder: str | None = None, parent: str | None = None, limit: int = 100
    ) -> list[About]:
        """Newest change first."""

    async def search(self, text: str, *, limit: int = 20) -> list["Hit"]:
        """Sessions in which these words were said, best first."""

    def redacted(self, event: Event) -> Event:
        """The event without secrets; the same object if there are none. For whoever runs the
        loop, before the loop sees it: then state, log and those who watch agree."""

    async def rename(self, session: str, title: str) -> None: ...

    async def fork(self, session: str, upto: int | None = None) -> str:
        """A new session with the same log up to an event; the id of it."""

    async def delete(self, session: str) -> None: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Hit:
    session: str
    seq: int
    excerpt: str
    """The words around the match, which is marked with « and »."""
