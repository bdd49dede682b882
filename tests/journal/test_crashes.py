"""Real processes that die, disks that are full, files that may not be written or are damaged."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from holdfast.core.events import Event
from holdfast.core.machine import replay
from holdfast.journal.base import Busy, JournalError
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_contract import log_of, talk

ROOT = Path(__file__).parents[2]


@contextmanager
def writer(path: Path, session: str, *more: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.journal.faults", "write", str(path), session, *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: "subprocess.Popen[str]") -> Iterator[tuple[str, str]]:
    assert process.stdout is not None
    for line in process.stdout:
        word, _, rest = line.strip().partition(" ")
        yield word, rest


def last_ack(process: "subprocess.Popen[str]", atleast: int) -> int:
    for word, rest in lines(process):
        if word == "ack" and int(rest) >= atleast:
            return int(rest)
    raise AssertionError("the writer ended early")


async def sound(path: Path, session: str, acknowledged: int) -> int:
    """Nothing acknowledged is lost, there is no gap, and the session goes on. Its length."""
    journal = SqliteJournal(path)
    book = await journal.open(session)
    stored = await journal.read(session)
    assert [each.seq for each in stored] == list(range(1, len(stored) + 1))
    assert book.seq == len(stored) >= acknowledged
    assert len(stored) % 2 == 0, "an append was torn"
    events = [each.event for each in stored]
    assert book.state == replay(events)
    await journal.aclose()
    return len(stored)


@pytest.mark.parametrize("after", [1, 40, 300, 1_200])
async def test_a_writer_that_is_killed_has_lost_nothing_acknowledged(
    tmp_path: Path, after: int
) -> None:
    path = tmp_path / "j.db"
    with writer(path, "s") as process:
        acknowledged = last_ack(process, after)
        process.send_signal(signal.SIGKILL)
        rest = [int(rest) for word, rest in lines(process) if word == "ack"]
    await sound(path, "s", max([acknowledged, *rest]))


async def test_a_session_of_a_living_process_is_busy_and_of_a_dead_one_is_free(
    tmp_path: Path,
) -> None:
    path = tmp_path / "j.db"
    journal = SqliteJournal(path)
    with writer(path, "s") as process:
        last_ack(process, 1)
        with pytest.raises(Busy, match=f"process {process.pid} on .* since 20"):
            await journal.open("s")
        assert f"process {process.pid}" in (await journal.about("s")).owner
        process.kill()
        process.wait()
        book = await journal.open("s")
    assert book.seq > 0
    await journal.aclose()


async def test_two_processes_write_to_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with writer(path, "a") as one, writer(path, "b") as two:
        a, b = last_ack(one, 200), last_ack(two, 200)
        a, b = last_ack(one, a + 20), last_ack(two, b + 20)
        one.kill()
        two.kill()
        one.wait()
        two.wait()
    await sound(path, "a", a)
    await sound(path, "b", b)


# --- the disk -------------------------------------------------------------------------------


async def test_a_full_disk_is_said_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    with writer(path, "s", "--size", "4000", "--file-limit", "600000") as process:
        told = list(lines(process))
    acknowledged = max(int(rest) for word, rest in told if word == "ack")
    (error,) = [rest for word, rest in told if word == "error"]
    assert error.startswith("JournalError")
    assert str(path) in error
    assert "disk" in error
    await sound(path, "s", acknowledged)


def mounted(folder: Path) -> bool:
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    return bool(mount) and subprocess.run(command, capture_output=True).returncode == 0


def allow(folder: Path, mode: int) -> None:
    folder.chmod(mode)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def unmount(folder: Path) -> None:
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_small_disk_fills_up_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if not mounted(small):
        pytest.skip("no permission to mount a small disk")
    try:
        path = small / "j.db"
        with writer(path, "s", "--size", "4000") as process:
            told = list(lines(process))
        acknowledged = max(int(rest) for word, rest in told if word == "ack")
        (error,) = [rest for word, rest in told if word == "error"]
        assert "the disk is full. Make room" in error
        shutil.copytree(small, tmp_path / "large")
    finally:
        unmount(small)
    await sound(tmp_path / "large" / "j.db", "s", acknowledged)


@pytest.mark.parametrize("what", ["file", "folder"])
async def test_what_may_not_be_written_is_said(tmp_path: Path, what: str) -> None:
    folder = Path(mkdtemp())  # others may look into it, which `tmp_path` does not allow
    path = folder / "j.db"
    if what == "file":
        journal = SqliteJournal(path)
        book = await journal.create(session="s")
        await book.close()
        await journal.aclose()
        path.chmod(0o444)
    allow(folder, 0o555)
    with writer(path, "s", *(["--nobody"] if os.geteuid() == 0 else [])) as process:
        told = list(lines(process))
    allow(folder, 0o755)
    assert [word for word, _ in told] == ["error"]
    assert str(path) in told[0][1]
    assert "written to" in told[0][1] or "opened" in told[0][1]
    shutil.rmtree(folder)


async def saved(path: Path, log: list[Event], *, close: bool = True) -> SqliteJournal:
    journal = SqliteJournal(path)
    book = await journal.create(session="s")
    state = book.state
    for start in range(0, len(log), 3):
        state = replay(log[start : start + 3], state)
        await book.append(log[start : start + 3], state).wait()
    if close:
        await journal.aclose()
    return journal


@pytest.mark.parametrize("lost", [1, 40, 3_000, 10_000])
async def test_of_a_torn_write_ahead_log_the_whole_commits_are_kept(
    tmp_path: Path, lost: int
) -> None:
    log = log_of(3, least=60)
    journal = await saved(tmp_path / "j.db", log, close=False)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("j.db", "j.db-wal"):  # as a disk that lost its last writes would have them
        shutil.copy(tmp_path / name, copy / name)
    await journal.aclose()
    wal = copy / "j.db-wal"
    content = wal.read_bytes()
    wal.write_bytes(content[:-lost] if lost % 2 else content[:-lost] + bytes(lost))
    with closing(sqlite3.connect(copy / "j.db")) as db:
        db.execute("update sessions set owner = ''")
        db.commit()
    again = SqliteJournal(copy / "j.db")
    book = await again.open("s")
    kept = [stored.event for stored in await again.read("s")]
    assert kept == log[: len(kept)]
    assert book.state == replay(kept)
    assert len(kept) % 3 == 0 or len(kept) == len(log)
    await again.aclose()


@pytest.mark.parametrize("where", ["header", "last page", "every page"])
async def test_a_damaged_file_is_said_and_kept(tmp_path: Path, where: str) -> None:
    path = tmp_path / "j.db"
    await saved(path, log_of(3, least=60))
    content = bytearray(path.read_bytes())
    damaged = {
        "header": range(16),
        "last page": range(len(content) - 4096, len(content)),
        "every page": range(4096, len(content), 7),
    }[where]
    for place in damaged:
        content[place] ^= 0x5A
    path.write_bytes(content)
    journal = SqliteJournal(path)
    with suppress(JournalError):  # whether it is noticed depends on where the damage is
        await journal.open("s")
        await journal.read("s")
    await journal.aclose()
    assert path.stat().st_size >= len(content)
    if where == "header":
        assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"hello, this is no database" * 50, b"x", b"\0" * 9000])
async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    journal = SqliteJournal(path)
    with pytest.raises(JournalError, match="notes.txt: it is no SQLite database"):
        await journal.create()
    with pytest.raises(JournalError, match="notes.txt"):
        await journal.sessions()
    await journal.aclose()
    assert path.read_bytes() == content
    assert names_in(tmp_path) == ["notes.txt"]


async def test_a_failed_commit_poisons_the_book(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    journal = SqliteJournal(path)
    book = await journal.create()
    log = talk("hello", "hi")
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "create trigger stop before insert on events begin select raise(abort, 'no'); end"
        )
        db.commit()
        failed = book.append(log, replay(log))
        behind = book.append(log, replay(log))
        for promise in (failed, behind):
            with pytest.raises(JournalError, match="j.db: no"):
                await promise.wait()
        db.execute("drop trigger stop")
        db.commit()
    with pytest.raises(JournalError, match="j.db: no"):
        book.append(log, replay(log))
    with pytest.raises(JournalError, match="j.db: no"):
        await book.close()
    assert await journal.read(book.id) == []
    assert (await journal.open(book.id)).seq == 0
    await journal.aclose()
