"""What every journal must do, as tests: derive a class from `JournalContract` and give it a `Place`.

    class TestMine(JournalContract):
        @pytest.fixture
        def place(self, tmp_path):
            return MyPlace(tmp_path)

The tests are asynchronous and need the pytest plugin of anyio in its automatic mode.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Protocol

import pytest

from holdfast.core.events import (
    Event,
    FromTheWorld,
    ModelAsked,
    ModelReplied,
    Outcome,
    Pinned,
    Purpose,
    Reply,
    RunStopped,
    ToolFinished,
    ToolStarted,
    UserSpoke,
    WantedCall,
)
from holdfast.core.history import call_id
from holdfast.core.limits import Settings, StopReason, Usage
from holdfast.core.machine import replay, step
from holdfast.core.messages import clean
from holdfast.core.state import NEW
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.journal.base import About, Busy, Fenced, Hit, Journal, JournalError, NoSuchSession
from holdfast.testing.world import World

NAMES = (
    "a/b", "../up", ".", "..", "C:\\x", "con", "A", "a", "\xe9", "e\u0301", "x" * 3_000, "*", "%41",
    "a\nb",
)  # fmt: skip
"""What a session may be called, and a file may not."""


class Place(Protocol):
    """Where the journals under test keep their sessions."""

    def journal(self) -> Journal:
        """One more journal on the same sessions, as another process would have it."""

    def dies(self, journal: Journal) -> None:
        """From now on this journal's process counts as dead. The object itself does not know, and
        tries to go on writing."""


def log_of(seed: int, least: int = 20) -> list[Event]:
    """Whatever happened in a simulated session, at least so many events."""
    while True:
        world = World(Random(seed))
        world.play()
        if len(world.log) >= least:
            return world.log
        seed += 1_000


def talk(question: str, answer: str, at: float = 1_000.0) -> list[Event]:
    """A whole run."""
    return [
        UserSpoke(question, at, Settings(model="m")),
        ModelAsked(1, Purpose.WORK, 10),
        ModelReplied(1, Reply(text=answer), at + 1),
        RunStopped(StopReason.ANSWERED, answer),
    ]


def long_log(length: int) -> list[Event]:
    """A session of so many events: runs of eight rounds, with a call in each."""
    log: list[Event] = []
    state, settings = NEW, Settings(system="You are an agent.", tools=(READ,))
    text = "INV-20417 2026-03-14 paid, 1284.50 in total\n" * 20
    while len(log) < length:
        at = 1_000.0 + len(log)
        coming: list[FromTheWorld] = [UserSpoke(f"task {len(log)}", at, settings)]
        for number in range(8):
            call = WantedCall("read", f'{{"path": "{len(log)}-{number}.txt"}}')
            reply = Reply(text="I read on.", calls=(call,)) if number < 7 else Reply(text="Done.")
            coming.append(ModelReplied(state.asks + number + 1, reply, at, Usage(prompt=500)))
            if number < 7:
                called = call_id(state.calls + number + 1)
                done = ToolFinished(called, Outcome.DONE, f"{number} {len(log)} {text}", at)
                coming += [ToolStarted(called, at), done]
        for event in coming:
            taken = step(state, event)
            state = taken.state
            log.extend(taken.events)
    return log[:length]


READ = ToolSpec(name="read", effect=SideEffect.READ, mutates=False)


@asynccontextmanager
async def closing(*journals: Journal) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for journal in journals:
            await journal.aclose()


async def written(journal: Journal, events: list[Event], session: str = "", **about: Any) -> str:
    """A session with this log, closed again."""
    book = await journal.create(session=session, **about)
    book.append(events, replay(events, book.state))
    await book.close()
    return book.id


async def events_of(journal: Journal, session: str) -> list[Event]:
    stored = await journal.read(session)
    assert [each.seq for each in stored] == list(range(1, len(stored) + 1))
    return [each.event for each in stored]


class JournalContract:
    @pytest.fixture
    def place(self) -> Place:
        raise NotImplementedError("say where the journals under test keep their sessions")

    # --- writing and reading --------------------------------------------------------------------

    async def test_a_new_session_is_empty(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            book = await journal.create()
            assert (book.seq, book.state, await journal.read(book.id)) == (0, NEW, [])

    async def test_what_is_appended_is_read_in_its_order(self, place: Place) -> None:
        journal, log = place.journal(), log_of(1)
        async with closing(journal):
            book, state = await journal.create(), NEW
            for event in log[:-1]:
                state = replay([event], state)
                book.append([event], state)
            last = book.append(log[-1:], replay(log[-1:], state))
            assert book.seq == len(log)
            await last.wait()
            await last.wait()
            assert await events_of(journal, book.id) == log

    async def test_an_empty_append_changes_nothing(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            book = await journal.create()
            await book.append([], NEW).wait()
            assert (book.seq, await journal.read(book.id)) == (0, [])

    @pytest.mark.parametrize("seed", range(8))
    async def test_a_session_that_is_opened_again_is_the_fold_of_its_log(
        self, place: Place, seed: int
    ) -> None:
        journal, log = place.journal(), log_of(seed)
        async with closing(journal):
            session = await written(journal, log)
        again = place.journal()
        async with closing(again):
            book = await again.open(session)
            assert (book.id, book.seq, book.state) == (session, len(log), replay(log))
            assert await events_of(again, session) == log

    async def test_reading_begins_after_an_event_and_ends_at_a_limit(self, place: Place) -> None:
        journal, log = place.journal(), log_of(2)
        async with closing(journal):
            session = await written(journal, log)
            part = await journal.read(session, after=3, limit=4)
            assert [each.seq for each in part] == [4, 5, 6, 7]
            assert [each.event for each in part] == log[3:7]
            assert await journal.read(session, after=len(log)) == []
            assert await journal.read(session, limit=0) == []

    async def test_any_text_comes_back_as_it_was(self, place: Place) -> None:
        odd = "NUL \0, lone \ud800, a pair as two \ud83d\ude00, 🙂, \x1b[31m, \r\n, « »"
        log: list[Event] = [
            UserSpoke(odd, 1.0, Settings(system=odd)),
            ToolFinished(odd, Outcome.FAILED, odd * 2_000, 2.0),
            Pinned(odd, odd, 3.0),
        ]
        journal = place.journal()
        async with closing(journal):
            session = await written(journal, log, title=odd, folder=odd, model=odd)
            assert await events_of(journal, session) == log

    async def test_two_journals_see_what_the_other_has_written(self, place: Place) -> None:
        one, two = place.journal(), place.journal()
        async with closing(one, two):
            book = await one.create()
            log = talk("hello", "hi")
            await book.append(log, replay(log)).wait()
            assert await events_of(two, book.id) == log

    # --- one writer at a time -------------------------------------------------------------------

    async def test_a_session_is_open_once(self, place: Place) -> None:
        one, two = place.journal(), place.journal()
        async with closing(one, two):
            book = await one.create(session="mine")
            for journal in (one, two):
                with pytest.raises(Busy, match="mine"):
                    await journal.open("mine")
                with pytest.raises(Busy, match="mine"):
                    await journal.create(session="mine")
            await book.close()
            assert (await two.open("mine")).id == "mine"

    async def test_closing_a_journal_gives_up_its_sessions(self, place: Place) -> None:
        one, two = place.journal(), place.journal()
        async with closing(one, two):
            book = await one.create(session="mine")
            log = talk("hello", "hi")
            book.append(log, replay(log))
            await one.aclose()
            assert (await two.open("mine")).state == replay(log)

    async def test_a_dead_owner_is_taken_over_and_never_writes_again(self, place: Place) -> None:
        zombie, heir = place.journal(), place.journal()
        log, late = talk("hello", "hi"), talk("late", "too late", at=2_000.0)
        async with closing(heir):
            book = await zombie.create()
            await book.append(log, replay(log)).wait()
            place.dies(zombie)
            mine = await heir.open(book.id)
            assert mine.state == replay(log)

            refused = book.append(late, replay(log + late))
            with pytest.raises(Fenced, match="taken over"):
                await refused.wait()
            with pytest.raises(Fenced):
                book.append(late, replay(log + late))
            with pytest.raises(Fenced):
                await book.keep(b"something")
            with pytest.raises(Fenced):
                await book.close()
            assert await events_of(heir, mine.id) == log

            more = talk("and now", "it goes on", at=3_000.0)
            await mine.append(more, replay(log + more)).wait()
            assert await events_of(heir, mine.id) == log + more
            await zombie.aclose()

    async def test_an_owner_that_was_taken_over_leaves_the_heir_alone(self, place: Place) -> None:
        zombie, heir, third = place.journal(), place.journal(), place.journal()
        async with closing(heir, third):
            book = await zombie.create(session="mine")
            place.dies(zombie)
            await heir.open("mine")
            await book.close()
            await zombie.aclose()
            with pytest.raises(Busy):
                await third.open("mine")

    async def test_a_dead_owner_of_a_deleted_session_writes_nowhere(self, place: Place) -> None:
        zombie, heir, log = place.journal(), place.journal(), talk("hello", "hi")
        async with closing(heir):
            book = await zombie.create(session="mine")
            place.dies(zombie)
            await heir.delete("mine")
            mine = await heir.create(session="mine")
            with pytest.raises(Fenced):
                await book.keep(b"something")
            with pytest.raises(Fenced):
                await book.append(log, replay(log)).wait()
            assert (mine.seq, await heir.read("mine")) == (0, [])
            with pytest.raises(Fenced):
                await zombie.aclose()

    async def test_reading_needs_no_ownership_and_takes_none(self, place: Place) -> None:
        one, two = place.journal(), place.journal()
        async with closing(one, two):
            session = await written(one, talk("hello", "hi"))
            await two.read(session)
            await two.about(session)
            assert (await one.open(session)).seq == 4

    async def test_nothing_is_taken_by_a_book_that_is_closed(self, place: Place) -> None:
        journal, log = place.journal(), talk("hello", "hi")
        async with closing(journal):
            book = await journal.create()
            await book.close()
            await book.close()
            with pytest.raises(JournalError, match="closed"):
                book.append(log, replay(log))

    async def test_a_journal_that_is_closed_says_so(self, place: Place) -> None:
        journal = place.journal()
        await journal.create()
        await journal.aclose()
        await journal.aclose()
        with pytest.raises(JournalError, match="closed"):
            await journal.create()

    # --- about sessions -------------------------------------------------------------------------

    async def test_a_session_is_known_without_its_log(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            session = await written(
                journal,
                talk("  Put the receipts\ninto a table " + "please " * 30, "Done.", at=9e9),
                folder="/home/ana",
                model="ollama/qwen",
                parent="p",
                labels=(("user", "ana"), ("x", "")),
            )
            about = await journal.about(session)
            assert about.began > 0
            assert about == About(
                id=session,
                title="Put the receipts into a table please please please please please please please…",
                folder="/home/ana",
                model="ollama/qwen",
                began=about.began,
                changed=9e9 + 1,
                events=4,
                parent="p",
                status="answered",
                labels=(("user", "ana"), ("x", "")),
            )

    async def test_a_run_that_has_not_ended_is_running(self, place: Place) -> None:
        journal, log = place.journal(), talk("hello", "hi")
        async with closing(journal):
            book = await journal.create(title="given")
            await book.append(log[:2], replay(log[:2])).wait()
            about = await journal.about(book.id)
            assert (about.status, about.events, about.title) == ("running", 2, "given")
            assert about.owner
            await book.close()
            assert (await journal.about(book.id)).owner == ""

    async def test_a_name_that_exists_is_opened(self, place: Place) -> None:
        journal, log = place.journal(), talk("hello", "hi")
        async with closing(journal):
            await written(journal, log, session="mine", title="first")
            book = await journal.create(session="mine", title="second")
            assert (book.state, (await journal.about("mine")).title) == (replay(log), "first")

    async def test_sessions_are_listed_with_the_newest_change_first(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            for name, at, folder in (("a", 7e9, "/x"), ("b", 9e9, "/x"), ("c", 8e9, "/y")):
                log = talk(name, name, at=at)
                await written(journal, log, session=name, folder=folder, parent=folder)

            async def names(**which: Any) -> list[str]:
                return [about.id for about in await journal.sessions(**which)]

            assert await names() == ["b", "c", "a"]
            assert await names(limit=2) == ["b", "c"]
            assert await names(folder="/x") == ["b", "a"]
            assert await names(parent="/y") == ["c"]
            assert await names(folder="") == []

    async def test_a_session_can_be_renamed(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            session = await written(journal, talk("hello", "hi"))
            await journal.rename(session, "receipts")
            assert (await journal.about(session)).title == "receipts"

    async def test_a_session_that_is_not_there_is_named_with_one_that_is(
        self, place: Place
    ) -> None:
        journal = place.journal()
        async with closing(journal):
            await written(journal, [], session="receipts-2026")
            asks: list[Callable[[str], Coroutine[Any, Any, Any]]] = [
                journal.open,
                journal.read,
                journal.about,
                journal.fork,
                journal.delete,
                lambda name: journal.rename(name, "x"),
            ]
            for ask in asks:
                with pytest.raises(NoSuchSession, match="'receipts-2025'.*receipts-2026"):
                    await ask("receipts-2025")

    # --- fork and delete ------------------------------------------------------------------------

    async def test_a_fork_goes_its_own_way(self, place: Place) -> None:
        journal = place.journal()
        log = talk("hello", "hi") + talk("more", "of it")
        async with closing(journal):
            session = await written(journal, log, folder="/x", title="t")
            fork = await journal.fork(session, upto=6)
            about = await journal.about(fork)
            assert (about.parent, about.folder, about.title) == (session, "/x", "t")
            assert (about.events, about.status) == (6, "running")

            book = await journal.open(fork)
            assert book.state == replay(log[:6])
            more = talk("elsewhere", "yes")
            await book.append(more, replay(log[:6] + more)).wait()
            assert await events_of(journal, fork) == log[:6] + more
            assert await events_of(journal, session) == log
            assert await events_of(journal, await journal.fork(session)) == log

    async def test_a_fork_cannot_know_more_than_its_session(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            session = await written(journal, talk("hello", "hi"))
            for upto in (5, -1):
                with pytest.raises(JournalError, match="4 events"):
                    await journal.fork(session, upto=upto)

    async def test_what_is_deleted_is_gone_and_only_that(self, place: Place) -> None:
        journal, log = place.journal(), talk("the secret plan", "hi")
        async with closing(journal):
            mine = await journal.create(session="mine")
            yours = await journal.create(session="yours")
            only_mine, shared = await mine.keep(b"mine"), await mine.keep(b"shared")
            assert await yours.keep(b"shared") == shared
            await mine.append(log, replay(log)).wait()
            with pytest.raises(Busy):
                await journal.delete("mine")
            await mine.close()
            await journal.delete("mine")
            with pytest.raises(NoSuchSession):
                await journal.read("mine")
            with pytest.raises(JournalError, match=only_mine):
                await journal.blob(only_mine)
            assert await journal.blob(shared) == b"shared"
            assert await journal.search("secret plan") == []

    # --- blobs ----------------------------------------------------------------------------------

    async def test_a_blob_is_stored_once_under_its_content(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            book = await journal.create()
            image = bytes(range(256)) * 1_000
            key = await book.keep(image)
            assert await book.keep(image) == key
            assert await book.keep(b"") != key
        again = place.journal()
        async with closing(again):
            assert await again.blob(key) == image
            with pytest.raises(JournalError, match="no-such-key"):
                await again.blob("no-such-key")

    # --- search ---------------------------------------------------------------------------------

    async def test_what_was_said_is_found(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            await written(journal, talk("Where are my receipts?", "In ~/Desktop."), session="a")
            await written(journal, talk("東京の天気を調べて", "晴れです。"), session="b")
            await written(journal, talk("Les données d'été", "Voilà: 한국어 텍스트"), session="c")

            async def found(text: str) -> list[str]:
                return [hit.session for hit in await journal.search(text)]

            assert await journal.search("receipts") == [Hit("a", 1, "Where are my «receipts»?")]
            assert await found("RECEI") == ["a"]
            assert await found("my where") == ["a"]
            assert await found("desktop") == ["a"]
            assert await found("天気") == ["b"]
            assert await found("晴れ") == ["b"]
            assert await found("气天") == []
            assert await found("été") == ["c"]
            assert await found("한국어") == ["c"]
            assert await found("receipts absent") == []

    @pytest.mark.parametrize(
        "text",
        ['"', "a AND", "NEAR(", "*", "'", "a:b", "-x", "(", "", "\0", "\ud800", "^a", "said : x"],
    )
    async def test_any_query_is_only_words(self, place: Place, text: str) -> None:
        journal = place.journal()
        async with closing(journal):
            await written(journal, talk("hello", "hi"))
            assert await journal.search(text) == []

    async def test_a_session_is_found_once_and_a_limit_is_kept(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            for name in ("a", "b", "c"):
                await written(journal, talk("blue blue", "blue"), session=name)
            assert len(await journal.search("blue")) == 3
            assert len(await journal.search("blue", limit=2)) == 2

    # --- names, secrets, forks ------------------------------------------------------------------

    async def test_any_text_is_a_name(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            for name in NAMES:
                await written(journal, talk(name, "hi"), session=name)
            said = [(await events_of(journal, name))[0] for name in NAMES]
            assert [getattr(spoke, "text", "") for spoke in said] == list(NAMES)
            assert {about.id for about in await journal.sessions()} == set(NAMES)
            with pytest.raises(NoSuchSession):
                await journal.read("b")

    async def test_a_name_that_cannot_be_written_is_cleaned_everywhere(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            book = await journal.create(session="a\0b\ud800", title="t\0\ud800")
            await book.close()
            again = await journal.open("a\0b\ud800")
            await again.close()
            await journal.rename(book.id, "new\0\ud800")
            title = (await journal.about(book.id)).title
            assert (again.id, clean(book.id), clean(title)) == (book.id, book.id, title)

    async def test_secrets_are_not_kept(self, place: Place) -> None:
        secret = "sk-ant-api03-" + "aB3dE5fG7h" * 9
        journal = place.journal()
        async with closing(journal):
            spoke = UserSpoke(f"My key is {secret}", 1.0, Settings(model="m"))
            assert secret not in str(journal.redacted(spoke))
            session = await written(journal, [spoke])
            assert secret not in str(await events_of(journal, session))
            assert secret not in (await journal.about(session)).title

    async def test_a_fork_keeps_the_blobs_of_a_session_that_is_deleted(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            book = await journal.create(session="old")
            key = await book.keep(b"an image")
            await book.close()
            await journal.fork("old")
            await journal.delete("old")
            assert await journal.blob(key) == b"an image"

    async def test_a_fork_of_an_open_session_is_open_nowhere(self, place: Place) -> None:
        journal = place.journal()
        async with closing(journal):
            book = await journal.create()
            await book.append(talk("a", "b"), replay(talk("a", "b"))).wait()
            fork = await journal.open(await journal.fork(book.id))
            assert fork.seq == book.seq

    async def test_nothing_is_written_behind_an_append_that_failed(self, place: Place) -> None:
        zombie, heir = place.journal(), place.journal()
        async with closing(heir):
            book = await zombie.create(session="mine")
            place.dies(zombie)
            mine = await heir.open("mine")
            late = talk("late", "late")
            promises = []
            for _ in range(20):
                try:
                    promises.append(book.append(late, replay(late)))
                except Fenced:
                    break
            for promise in promises:
                with pytest.raises(Fenced):
                    await promise.wait()
            assert (mine.seq, await heir.read("mine")) == (0, [])
            with pytest.raises(Fenced):
                await zombie.aclose()
