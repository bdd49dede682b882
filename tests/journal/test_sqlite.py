"""What only the SQLite journal promises: kept states, migrations, owners, many sessions at once."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from holdfast.core.events import Event, Outcome, ToolFinished, UserSpoke
from holdfast.core.limits import Settings
from holdfast.core.machine import replay
from holdfast.core.state import NEW
from holdfast.core.tools import ToolSpec
from holdfast.journal import migrations, snapshots
from holdfast.journal.base import Busy, Fenced, JournalError
from holdfast.journal.codec import Unreadable
from holdfast.journal.migrations import OURS, connect, prepare
from holdfast.journal.owner import BEAT, LEASE, Owner, is_alive, myself
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_contract import long_log, talk, written


def query(path: Path, sql: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        found = db.execute(sql, values).fetchall()
        db.commit()
        return found


def run(sql: str, db: sqlite3.Connection) -> None:
    db.execute(sql)


async def append_in_steps(journal: SqliteJournal, log: list[Event], session: str) -> None:
    book = await journal.create(session=session)
    state = book.state
    for start in range(0, len(log), 5):
        state = replay(log[start : start + 5], state)
        await book.append(log[start : start + 5], state).wait()
    await book.close()


# --- kept states ----------------------------------------------------------------------------


@pytest.mark.parametrize("length", [300, 700, 1_500])
async def test_a_kept_state_and_the_events_after_it_are_the_whole_fold(
    tmp_path: Path, length: int
) -> None:
    path, log = tmp_path / "j.db", long_log(length)
    journal = SqliteJournal(path)
    await append_in_steps(journal, log, "s")
    ((kept,),) = query(path, "select seq from snapshots")
    assert isinstance(kept, int)
    assert 0 < kept <= length
    assert (await journal.open("s")).state == replay(log)
    await journal.aclose()


@pytest.mark.parametrize(
    "damage",
    [
        "delete from snapshots",
        "update snapshots set core = 'another'",
        "update snapshots set body = x'00'",
        "update snapshots set body = substr(body, 1, length(body) / 2)",
        "update snapshots set seq = seq + 100000",
    ],
)
async def test_without_a_kept_state_that_counts_the_log_is_folded(
    tmp_path: Path, damage: str
) -> None:
    path, log = tmp_path / "j.db", long_log(300)
    journal = SqliteJournal(path)
    await append_in_steps(journal, log, "s")
    query(path, damage)
    assert (await journal.open("s")).state == replay(log)
    await journal.aclose()


async def test_a_state_kept_by_other_code_is_not_used(tmp_path: Path) -> None:
    """It is made wrong here, so that using it would show."""
    path, log = tmp_path / "j.db", long_log(300)
    journal = SqliteJournal(path)
    await append_in_steps(journal, log, "s")
    ((body,),) = query(path, "select body from snapshots")
    await append_in_steps(journal, log[:50], "other")
    query(path, "insert or replace into snapshots values (2, 50, 'foreign', ?)", body)
    assert (await journal.open("other")).state == replay(log[:50])
    assert snapshots.fingerprint() != "foreign"
    await journal.aclose()


async def test_opening_writes_nothing_but_the_owner(tmp_path: Path) -> None:
    path, log = tmp_path / "j.db", long_log(300)
    journal = SqliteJournal(path)
    await append_in_steps(journal, log, "s")

    def content() -> list[object]:
        tables = ("events", "blobs", "uses", "snapshots", "said")
        rows: list[object] = [query(path, f"select * from {table}") for table in tables]
        return [*rows, query(path, "select n, id, title, changed, status, seq from sessions")]

    before = content()
    await journal.open("s")
    await journal.read("s")
    await journal.search("fox")
    assert content() == before
    await journal.aclose()


async def test_an_open_that_nobody_waits_for_leaves_the_session_free(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    await written(journal, long_log(200), session="s")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await journal.open("s")
    assert (await journal.open("s")).seq == 200
    await journal.aclose()


# --- large texts ----------------------------------------------------------------------------


async def test_what_is_large_or_the_same_in_every_run_is_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    tools = tuple(ToolSpec(name=f"tool{n}", description="x" * 500) for n in range(40))
    settings = Settings(system="You are an agent. " * 200, tools=tools)
    text = os.urandom(50_000).hex()
    log: list[Event] = []
    for number in range(20):
        log.append(UserSpoke(f"task {number}", float(number), settings))
        log.append(ToolFinished("c1", Outcome.DONE, text, float(number)))
    journal = SqliteJournal(path)
    book = await journal.create(session="s")
    for event in log:
        book.append([event], NEW)
    await book.close()
    assert [stored.event for stored in await journal.read("s")] == log
    ((blobs, size),) = query(path, "select count(*), sum(length(content)) from blobs")
    ((bodies,),) = query(path, "select max(length(body)) from events")
    await journal.aclose()
    assert isinstance(size, int)
    assert isinstance(bodies, int)
    assert blobs == 2
    assert size < len(text) + 5_000
    assert bodies < 1_000


# --- owners ---------------------------------------------------------------------------------


def test_an_owner_is_alive_while_its_process_is() -> None:
    me = myself("token", 0.0)
    assert not is_alive(me, 0.0, 0.0), "its journal is not open"
    parent = replace(me, pid=os.getppid(), began="")
    assert not is_alive(parent, 0.0, 0.0), "the number was given to another process"
    assert not is_alive(replace(me, boot="before"), 0.0, 0.0)
    assert not is_alive(replace(me, pid=2**22 + 1), 0.0, 0.0)


def test_an_owner_elsewhere_is_alive_while_its_heart_beats() -> None:
    other = Owner("elsewhere", "", 1, "", "", 0.0)
    assert is_alive(other, 1_000.0, 1_000.0 + LEASE)
    assert not is_alive(other, 1_000.0, 1_001.0 + LEASE)
    assert not is_alive(other, 2_000.0 + LEASE, 1_000.0), "its clock was wrong"
    assert BEAT * 3 < LEASE


async def test_a_session_held_on_another_machine_is_busy_until_its_lease_is_over(
    tmp_path: Path,
) -> None:
    path, now = tmp_path / "j.db", 5_000.0
    journal = SqliteJournal(path, clock=lambda: now)
    await written(journal, talk("hello", "hi"), session="s")
    owner = Owner("far-away/pid:[1]", "b", 7, "1", "t", now).as_text()
    query(path, "update sessions set owner = ?, beat = ?", owner, now - 5)
    with pytest.raises(Busy, match="process 7 on far-away since"):
        await journal.open("s")
    now += LEASE
    assert (await journal.open("s")).seq == 4
    await journal.aclose()


async def test_an_append_counts_only_in_its_epoch_and_at_its_place(tmp_path: Path) -> None:
    path, log = tmp_path / "j.db", talk("hello", "hi")
    for change in ("epoch = epoch + 1", "epoch = epoch - 1", "seq = seq + 1"):
        journal = SqliteJournal(path)
        book = await journal.create(session=change)
        query(path, f"update sessions set {change} where id = ?", change)
        with pytest.raises(Fenced):
            await book.append(log, replay(log)).wait()
        assert await journal.read(change) == []
        with pytest.raises(Fenced):
            await journal.aclose()


# --- time and crowds ------------------------------------------------------------------------


async def test_a_clock_that_jumps_back_changes_no_order(tmp_path: Path) -> None:
    now = 9_000.0
    journal = SqliteJournal(tmp_path / "j.db", clock=lambda: now)
    book = await journal.create(session="s")
    state = NEW
    for at in (9_100.0, 20.0, 8_000.0):
        log = talk(f"at {at}", "yes", at=at)
        state = replay(log, state)
        await book.append(log, state).wait()
        now = at
    about = await journal.about("s")
    assert (about.began, about.changed, about.events) == (9_000.0, 9_101.0, 12)
    assert [stored.seq for stored in await journal.read("s")] == list(range(1, 13))
    await journal.aclose()


async def test_a_thousand_sessions_append_at_once(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    log = talk("hello", "hi")

    async def one(name: str) -> None:
        book = await journal.create(session=name)
        state = NEW
        for event in log:
            state = replay([event], state)
            await book.append([event], state).wait()
        await book.close()

    async with anyio.create_task_group() as group:
        for number in range(1_000):
            group.start_soon(one, f"s{number}")
    assert len(await journal.sessions(limit=2_000)) == 1_000
    for name in ("s0", "s500", "s999"):
        assert [stored.event for stored in await journal.read(name)] == log
    await journal.aclose()


async def test_a_journal_is_used_from_several_event_loops(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    log = talk("hello", "hi")

    async def elsewhere(name: str) -> int:
        book = await journal.create(session=name)
        await book.append(log, replay(log)).wait()
        await book.close()
        return book.seq

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for name in ("a", "b", "c"):
                group.start_soon(anyio.to_thread.run_sync, anyio.run, elsewhere, name)
            group.start_soon(elsewhere, "here")
    assert {about.id for about in await journal.sessions()} == {"a", "b", "c", "here"}
    await journal.aclose()


# --- versions of the file -------------------------------------------------------------------


async def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    journal = SqliteJournal(path)
    await written(journal, talk("hello", "hi"))
    await journal.aclose()
    query(path, "pragma user_version = 9")
    before = path.read_bytes()
    newer = SqliteJournal(path)
    with pytest.raises(JournalError, match="newer Holdfast .its version is 9, this one knows 1"):
        await newer.sessions()
    await newer.aclose()
    assert path.read_bytes() == before


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mail.db"
    query(path, "create table mail (text)")
    before = path.read_bytes()
    journal = SqliteJournal(path)
    with pytest.raises(JournalError, match="mail.db is a database of another program"):
        await journal.create()
    await journal.aclose()
    assert path.read_bytes() == before


async def test_a_migration_keeps_a_copy_of_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    journal = SqliteJournal(path)
    await written(journal, talk("hello", "hi"), session="s")
    with closing(connect(path, "full")) as db:  # while the other still has it open
        steps: dict[int, migrations.Migration] = {
            1: partial(run, "alter table sessions add column mood text"),
            2: partial(run, "update sessions set mood = 'good'"),
        }
        prepare(db, path, steps, 3)
        assert db.execute("select id, mood from sessions").fetchall() == [("s", "good")]
    await journal.aclose()
    old = tmp_path / "j.db.v1.bak"
    assert query(old, "pragma user_version") == [(1,)]
    assert query(old, "select id, seq from sessions") == [("s", 4)]
    assert query(old, "pragma application_id") == [(OURS,)]


async def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    journal = SqliteJournal(path)
    await written(journal, talk("hello", "hi"), session="s")
    await journal.aclose()

    def halfway(db: sqlite3.Connection) -> None:
        db.execute("drop table events")
        raise RuntimeError("a mistake")

    with closing(connect(path, "full")) as db, pytest.raises(RuntimeError):
        prepare(db, path, {1: halfway}, 2)
    assert query(path, "pragma user_version") == [(1,)]
    again = SqliteJournal(path)
    assert len(await again.read("s")) == 4
    await again.aclose()


async def test_an_event_of_a_newer_version_is_refused_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    journal = SqliteJournal(path)
    await written(journal, talk("hello", "hi"), session="s")
    query(path, 'update events set body = cast(\'{"k":"Dreamt","v":1}\' as blob) where seq = 3')
    said = "event 3 of session 's': 'Dreamt' of version 1 was written by a newer Holdfast"
    with pytest.raises(Unreadable, match=said):
        await journal.read("s")
    with pytest.raises(Unreadable, match=said):
        await journal.open("s")
    assert len(await journal.read("s", limit=2)) == 2
    assert (await journal.about("s")).owner == ""
    await journal.aclose()


async def test_a_wrong_option_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'off'"):
        SqliteJournal(tmp_path / "j.db", synchronous="off")  # type: ignore[arg-type]
