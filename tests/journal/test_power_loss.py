"""The power is cut at every single write: what was acknowledged before is there afterwards.

One run is recorded below SQLite, write by write. For each moment of it a disk is made as it may
look after the cut: what was synced is there, and of what was not each write is there, gone or torn.
"""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from holdfast.core.events import Event, Pinned
from holdfast.core.machine import replay
from holdfast.journal import store
from holdfast.journal.base import About, JournalError, NoSuchSession
from holdfast.journal.migrations import prepare
from holdfast.journal.owner import Owner
from holdfast.journal.rows import rows_of
from holdfast.journal.sqlite import SqliteJournal
from holdfast.journal.store import Claimed
from holdfast.journal.writer import Call, Writer

apsw = pytest.importorskip("apsw", reason="the tests of power loss need apsw")

SECTOR = 512
ACK, WRITE, SYNC, TRUNCATE, DELETE = "ack", "write", "sync", "truncate", "delete"


@dataclass
class Tape:
    """What reached the operating system, in its order."""

    moments: list[tuple[Any, ...]] = field(default_factory=list)

    def disk_at(self, cut: int, random: Random) -> tuple[dict[str, bytes], int]:
        """The files as they may be after a cut, and the last acknowledged event."""
        acknowledged = 0
        files: dict[str, bytearray] = {}
        unsynced: dict[str, list[tuple[Any, ...]]] = {}
        for what, *rest in self.moments[:cut]:
            if what == ACK:
                acknowledged = rest[0]
                continue
            name = rest[0]
            if what == DELETE:
                files.pop(name, None)
                unsynced.pop(name, None)
                continue
            files.setdefault(name, bytearray())
            if what == SYNC:
                for change in unsynced.pop(name, ()):
                    apply(files[name], change)
            else:
                unsynced.setdefault(name, []).append((what, *rest[1:]))
        for name, changes in unsynced.items():
            for change in changes:
                fate = random.choice(("kept", "lost", "torn"))
                if fate == "torn" and change[0] == WRITE:
                    kept = random.randrange(0, len(change[2]) + 1, SECTOR)
                    apply(files[name], (WRITE, change[1], change[2][:kept]))
                elif fate == "kept":
                    apply(files[name], change)
        return {name: bytes(content) for name, content in files.items()}, acknowledged


def apply(content: bytearray, change: tuple[Any, ...]) -> None:
    what, at, *data = change
    if what == TRUNCATE:
        del content[at:]
        return
    content.extend(bytes(max(0, at + len(data[0]) - len(content))))
    content[at : at + len(data[0])] = data[0]


def recorder(tape: Tape, name: str) -> Any:
    class File(apsw.VFSFile):  # type: ignore[name-defined, misc]
        def __init__(self, path: Any, flags: list[int]) -> None:
            self.file = Path(path.filename() if hasattr(path, "filename") else path).name
            super().__init__("", path, flags)

        def xWrite(self, data: bytes, offset: int) -> None:
            tape.moments.append((WRITE, self.file, offset, bytes(data)))
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:
            tape.moments.append((SYNC, self.file))
            super().xSync(flags)

        def xTruncate(self, size: int) -> None:
            tape.moments.append((TRUNCATE, self.file, size))
            super().xTruncate(size)

    class Vfs(apsw.VFS):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__(name, "")

        def xDelete(self, filename: str, syncdir: bool) -> None:
            tape.moments.append((DELETE, Path(filename).name))
            super().xDelete(filename, syncdir)

        def xOpen(self, path: Any, flags: list[int]) -> Any:
            return File(path, flags)

    return Vfs()


class Adapter:
    """An apsw connection with the manners of `sqlite3`, as far as the journal uses them."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def execute(self, sql: str, values: Any = ()) -> "Adapter":
        self.cursor = self.connection.cursor()
        try:
            self.cursor.execute(sql, values)
        except apsw.Error as wrong:
            raise sqlite3.OperationalError(str(wrong)) from wrong
        self.rowcount = self.connection.changes()
        self.lastrowid = self.connection.last_insert_rowid()
        return self

    def executemany(self, sql: str, many: Any) -> None:
        for values in many:
            self.execute(sql, values)

    def fetchone(self) -> Any:
        return self.cursor.fetchone()

    @property
    def in_transaction(self) -> bool:
        return bool(self.connection.in_transaction)

    def close(self) -> None:
        self.connection.close()


async def record(path: Path, synchronous: str, appends: int) -> tuple[Tape, list[Event]]:
    tape = Tape()
    log: list[Event] = []
    vfs = recorder(tape, f"recorder-{synchronous}")

    def connect() -> sqlite3.Connection:
        db = Adapter(apsw.Connection(str(path), vfs=f"recorder-{synchronous}"))
        # Without shared memory, which a file system in Python cannot have.
        db.execute("pragma locking_mode = exclusive")
        db.execute(f"pragma synchronous = {synchronous}")
        db.execute("pragma journal_mode = wal")
        db.execute("pragma wal_autocheckpoint = 40")
        prepare(cast(sqlite3.Connection, db), path)
        return cast(sqlite3.Connection, db)

    nothing = lambda db: None  # noqa: E731
    writer = Writer(connect, str, idly=nothing, beat=nothing, pause=1.0)

    async def write(function: Any) -> Any:
        call = Call(function)
        writer.put(call)
        return await call.promise.result()

    nobody = Owner("elsewhere", "", 1, "", "", 0.0)

    def begin(db: sqlite3.Connection) -> Claimed:
        store.insert(db, About(id="s"))
        return store.claim(db, "s", nobody, 1e9)

    claimed = await write(begin)
    for number in range(appends):
        events: list[Event] = [
            Pinned("a", f"{number} {'x' * (number * 37 % 3_000)}", 1.0),
            Pinned("b", str(number), 2.0),
        ]
        seq = len(log)
        await write(
            lambda db, seq=seq, events=events: store.append(
                db, claimed, seq, rows_of(events), store.told(events)
            )
        )
        log.extend(events)
        tape.moments.append((ACK, len(log)))
    writer.stop()
    del vfs
    return tape, log


def make(folder: Path, disk: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, content in disk.items():
        (folder / name).write_bytes(content)


async def survivors(folder: Path, disk: dict[str, bytes]) -> list[Event]:
    make(folder, disk)
    journal = SqliteJournal(folder / "j.db")
    try:
        kept = [stored.event for stored in await journal.read("s")]
        book = await journal.open("s")
        assert book.state == replay(kept)
        return kept
    except NoSuchSession:
        return []
    finally:
        await journal.aclose()


async def test_a_power_cut_takes_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    tape, log = await record(tmp_path / "j.db", "full", 40)
    assert sum(moment[0] == SYNC for moment in tape.moments) >= 40
    for cut in range(1, len(tape.moments) + 1):
        disk, acknowledged = tape.disk_at(cut, Random(cut))
        if not acknowledged:
            continue  # the file itself may not be there yet
        kept = await survivors(tmp_path / f"after-{cut}", disk)
        assert kept == log[: len(kept)]
        assert len(kept) >= acknowledged, f"cut at {cut} of {len(tape.moments)}"


async def test_the_same_cuts_do_take_something_where_the_disk_is_not_waited_for(
    tmp_path: Path,
) -> None:
    """The test above would notice."""
    tape, log = await record(tmp_path / "j.db", "normal", 40)
    lost = 0
    for cut in range(1, len(tape.moments) + 1, 7):
        disk, acknowledged = tape.disk_at(cut, Random(cut))
        if not acknowledged:
            continue
        try:
            kept = await survivors(tmp_path / f"after-{cut}", disk)
        except JournalError:
            kept = []
        assert kept == log[: len(kept)]
        lost += len(kept) < acknowledged
    assert lost
