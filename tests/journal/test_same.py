"""Whatever is done to them, the SQLite journal and the one in memory say the same."""

import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from holdfast.core.events import Event, Pinned, RunStopped, UserSpoke
from holdfast.core.limits import Settings, StopReason
from holdfast.core.machine import replay
from holdfast.journal.base import About, Book, Journal, JournalError
from holdfast.journal.memory import MemoryJournal, Shelf
from holdfast.journal.owner import LIVING
from holdfast.journal.sqlite import SqliteJournal

T = TypeVar("T")
names = st.sampled_from("abc")
texts = st.sampled_from(("hello", "", "東京", "lone \ud800", "x" * 20_000))


class Twins(RuleBasedStateMachine):
    """Two places, two journals on each, and zombies that do not know they are dead."""

    @initialize()
    def begin(self) -> None:
        self.portal_context = start_blocking_portal()
        self.portal = self.portal_context.__enter__()
        self.folder = Path(mkdtemp())
        self.shelf = Shelf()
        self.now = 1_000.0
        self.pairs = [self.pair(), self.pair()]
        self.books: list[tuple[Book, Book]] = []
        self.zombies: list[tuple[MemoryJournal, SqliteJournal]] = []

    def pair(self) -> tuple[MemoryJournal, SqliteJournal]:
        clock = lambda: self.now  # noqa: E731
        return (
            MemoryJournal(self.shelf, clock=clock),
            SqliteJournal(self.folder / "j.db", synchronous="normal", clock=clock),
        )

    def outcome(self, doing: Callable[[], Coroutine[Any, Any, T]]) -> T | type[JournalError]:
        try:
            done: T = self.portal.call(doing)
        except JournalError as wrong:
            return type(wrong)
        return done

    def same(self, which: int, doing: Callable[[Journal], Coroutine[Any, Any, Any]]) -> Any:
        memory, sqlite = self.pairs[which]
        one, two = self.outcome(lambda: doing(memory)), self.outcome(lambda: doing(sqlite))
        assert plain(one) == plain(two)
        return one, two

    @rule(which=st.integers(0, 1), name=names, text=texts)
    def create(self, which: int, name: str, text: str) -> None:
        self.opened(
            *self.same(which, lambda journal: journal.create(session=name, title=text, folder=name))
        )

    @rule(which=st.integers(0, 1), name=names)
    def open(self, which: int, name: str) -> None:
        self.opened(*self.same(which, lambda journal: journal.open(name)))

    def opened(self, one: Any, two: Any) -> None:
        if not isinstance(one, type):
            assert (one.seq, one.state) == (two.seq, two.state)
            self.books.append((one, two))

    @precondition(lambda self: self.books)
    @rule(data=st.data(), text=texts, stops=st.booleans())
    def append(self, data: st.DataObject, text: str, stops: bool) -> None:
        books = data.draw(st.sampled_from(self.books))
        self.now += 1
        events: list[Event] = [UserSpoke(text, self.now, Settings()), Pinned("p", text, self.now)]
        if stops:
            events.append(RunStopped(StopReason.OUT_OF_TIME, text or "end"))

        async def write(book: Book) -> int:
            log = [stored.event for stored in await self.pairs[0][0].read(book.id)]
            await book.append(events, replay(log + events)).wait()
            return book.seq

        assert self.outcome(lambda: write(books[0])) == self.outcome(lambda: write(books[1]))

    @precondition(lambda self: self.books)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        one, two = data.draw(st.sampled_from(self.books))
        assert self.outcome(one.close) == self.outcome(two.close)

    @precondition(lambda self: self.books)
    @rule(data=st.data(), content=st.binary(max_size=4))
    def keep(self, data: st.DataObject, content: bytes) -> None:
        one, two = data.draw(st.sampled_from(self.books))
        key = self.outcome(lambda: one.keep(content))
        assert key == self.outcome(lambda: two.keep(content))
        if isinstance(key, str):
            self.same(0, lambda journal: journal.blob(key))

    @rule(which=st.integers(0, 1))
    def die(self, which: int) -> None:
        memory, sqlite = self.pairs[which]
        self.shelf.living.discard(memory.token)
        LIVING.discard(sqlite.token)
        self.zombies.append((memory, sqlite))
        self.pairs[which] = self.pair()

    @rule(which=st.integers(0, 1), name=names, title=texts)
    def rename(self, which: int, name: str, title: str) -> None:
        self.same(which, lambda journal: journal.rename(name, title))

    @rule(which=st.integers(0, 1), name=names)
    def delete(self, which: int, name: str) -> None:
        self.same(which, lambda journal: journal.delete(name))

    @rule(which=st.integers(0, 1), name=names, upto=st.none() | st.integers(0, 5))
    def fork(self, which: int, name: str, upto: int | None) -> None:
        async def forked(journal: Journal) -> Any:
            new = await journal.fork(name, upto)
            found = [stored.event for stored in await journal.read(new)]
            about = await journal.about(new)
            await journal.delete(new)
            return found, about.title, about.parent, about.status, about.events

        self.same(which, forked)

    @rule(which=st.integers(0, 1), name=names, after=st.integers(0, 4))
    def look(self, which: int, name: str, after: int) -> None:
        self.same(which, lambda journal: journal.read(name, after, 3))
        self.same(which, lambda journal: journal.about(name))
        self.same(which, lambda journal: journal.sessions(folder=name))

    def teardown(self) -> None:
        if hasattr(self, "portal"):
            for memory, sqlite in (*self.pairs, *self.zombies):
                self.outcome(memory.aclose)
                self.outcome(sqlite.aclose)
            self.portal_context.__exit__(None, None, None)
            shutil.rmtree(self.folder)


def plain(value: Any) -> Any:
    """Without what two journals word differently, and without what is no value."""
    if isinstance(value, About):
        return (value.id, value.title, value.changed, value.events, value.status, bool(value.owner))
    if isinstance(value, list):
        return [plain(each) for each in value]
    return None if hasattr(value, "append") else value


TestTwins = Twins.TestCase
TestTwins.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
