"""Who watches a session, and what they are shown: stored events in their order, none left out, and
between them what passes by (words as they come, progress), as far as a watcher keeps up.

A slow watcher never slows a run. Nothing waits for it: when it falls too far behind it loses what
only passes by, and reads the stored events again from the journal.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import anyio

from holdfast.core.events import Event
from holdfast.journal.base import Stored, Written
from holdfast.models.base import Piece
from holdfast.tools.base import Form, Progress
from holdfast.tools.door import Question

MOST_WAITING = 1_000
"""What one watcher may leave unread before it is sent back to the journal."""
PAGE = 500


@dataclass(frozen=True, slots=True)
class Passing:
    """Something to be shown now or never: it is in no log."""

    what: "Piece | Progress | Question | Form | Answered"
    call_id: str = ""
    """The call it is about; empty where it is about the reply of the model."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A question or a form needs no answer any longer: it has one, or nobody waits for it."""

    id: str


Shown: TypeAlias = Stored | Passing
Read: TypeAlias = Callable[[int, int], Awaitable[list[Stored]]]
"""Stored events after a number, at most so many, from disk. All that were published by then must
be there."""


class Bus:
    def __init__(self, read: Read, seq: int = 0) -> None:
        self._read = read
        self._watchers: set[Watcher] = set()
        self.seq = seq
        """Of the newest stored event."""

    def publish(self, events: tuple[Event, ...], written: Written) -> None:
        """These were appended to the log; they are shown when they are on disk."""
        for event in events:
            self.seq += 1
            if self._watchers:
                stored = Stored(self.seq, event)
                for watcher in self._watchers:
                    watcher.put(stored, written)

    def pass_by(self, passing: Passing) -> None:
        for watcher in self._watchers:
            watcher.put(passing, None)

    @property
    def is_watched(self) -> bool:
        return bool(self._watchers)

    def watch(self, after: int | None = None) -> "Watcher":
        """From the event behind number `after` on; None: from now on."""
        watcher = Watcher(self, self.seq if after is None else after)
        self._watchers.add(watcher)
        return watcher

    def forget(self, watcher: "Watcher") -> None:
        self._watchers.discard(watcher)

    async def stored(self, after: int) -> list[Stored]:
        return await self._read(after, PAGE)


class Watcher:
    """One who watches: an async iterator that ends when it is closed."""

    def __init__(self, bus: Bus, after: int) -> None:
        self._bus = bus
        self._seen = after
        self._behind = after < bus.seq
        self._page: deque[Stored] = deque()
        """From disk, and before whatever is waiting."""
        self._waiting: deque[tuple[Shown, Written | None]] = deque()
        self._news = anyio.Event()
        self._closed = False

    def put(self, shown: Shown, written: Written | None) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self._behind = True
        self._waiting.append((shown, written))
        self._news.set()

    def close(self) -> None:
        """What is waiting can still be read; nothing more will come."""
        self._closed = True
        self._bus.forget(self)
        self._news.set()

    def __aiter__(self) -> AsyncIterator[Shown]:
        return self

    async def __anext__(self) -> Shown:
        while True:
            if self._page:
                return self._next_stored(self._page.popleft())
            if self._behind:
                await self._turn_the_page()
                continue
            if self._waiting:
                shown, written = self._waiting[0]
                if written is not None:
                    # What a crash could take back must not have been shown. It stays in its place
                    # meanwhile: whoever waits here may be cancelled, and come again.
                    await written.wait()
                if not self._waiting or self._waiting[0][0] is not shown:
                    continue  # it fell behind, and reads from disk
                self._waiting.popleft()
                if isinstance(shown, Passing):
                    return shown
                if shown.seq > self._seen:  # else it was read from disk
                    return self._next_stored(shown)
                continue
            if self._closed:
                raise StopAsyncIteration
            self._news = anyio.Event()
            await self._news.wait()

    def _next_stored(self, stored: Stored) -> Stored:
        self._seen = stored.seq
        return stored

    async def _turn_the_page(self) -> None:
        # Before reading, not after: whoever falls behind meanwhile must read again.
        self._behind = False
        try:
            self._page.extend(await self._bus.stored(self._seen))
        except BaseException:
            self._behind = True
            raise
        self._behind = self._behind or bool(self._page)
