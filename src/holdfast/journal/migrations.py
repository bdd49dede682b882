"""The file of a SQLite journal: its tables, and the way from an older version to this one.

A file of an older version is copied beside itself before anything is changed (`name.v1.bak`), and
the change is one transaction. A file of a newer version, or one that is no journal at all, is
refused and left as it is.
"""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from holdfast.journal.base import JournalError

Migration: TypeAlias = Callable[[sqlite3.Connection], None]

OURS = 0x484F4C44
"""`application_id`: "HOLD". Another program's database is not ours to change."""
VERSION = 1
MIGRATIONS: Mapping[int, Migration] = {}
"""From each version to the next."""
PATIENCE = 30.0
"""Seconds to wait for another process that is writing. It commits in milliseconds; a backup or a
full disk may take longer."""

# Tables with rowids and no `without rowid`: with a kilobyte in a row that took four times the room.
SCHEMA = """
create table sessions (
  n integer primary key autoincrement,
  id text not null unique,
  title text not null,
  folder text not null,
  model text not null,
  parent text not null,
  labels text not null,
  began real not null,
  changed real not null,
  status text not null default '',
  seq integer not null default 0,
  epoch integer not null default 0,
  owner text not null default '',
  beat real not null default 0
);
create index sessions_by_change on sessions (changed);
create index sessions_by_parent on sessions (parent);
create table events (
  n integer primary key,
  session integer not null,
  seq integer not null,
  aside integer not null,
  body blob not null,
  unique (session, seq)
);
create table blobs (
  key text primary key,
  packed integer not null,
  content blob not null
);
create table uses (
  session integer not null,
  key text not null,
  primary key (session, key)
) without rowid;
create table snapshots (
  session integer primary key,
  seq integer not null,
  core text not null,
  body blob not null
);
create virtual table said using fts5 (text, tokenize = "unicode61 remove_diacritics 2");
"""


def connect(path: Path, synchronous: str) -> sqlite3.Connection:
    """For writing: the file is made, or brought up to date, if need be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_foreign(path):
            raise sqlite3.DatabaseError("file is not a database")
        connection = _connection(path, synchronous)
    except (sqlite3.Error, OSError) as wrong:
        raise JournalError(sentence(path, wrong)) from wrong
    try:
        prepare(connection, path)
        connection.execute("pragma journal_mode = wal")
    except sqlite3.Error as wrong:
        connection.close()
        raise JournalError(sentence(path, wrong)) from wrong
    except BaseException:
        connection.close()
        raise
    return connection


def is_foreign(path: Path) -> bool:
    """SQLite itself takes a very short file for an empty one, and writes over it."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        head = file.read(16)
    return bool(head) and head != b"SQLite format 3\0"


def _connection(path: Path, synchronous: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"pragma synchronous = {synchronous}")
    return connection


def reader(path: Path) -> sqlite3.Connection:
    """For reading; of a file that `connect` has seen."""
    connection = _connection(path, "normal")
    connection.execute("pragma query_only = on")
    return connection


def prepare(
    connection: sqlite3.Connection,
    path: Path,
    migrations: Mapping[int, Migration] = MIGRATIONS,
    newest: int = VERSION,
) -> None:
    """The tables as this version wants them, or a `JournalError` and the file as it was."""
    if _version(connection, path, newest) == newest:
        return
    connection.execute("begin immediate")
    try:
        found = _version(connection, path, newest)  # another process may have been quicker
        if found == 0:
            _create(connection)
        elif found < newest:
            _copy(path, path.with_name(f"{path.name}.v{found}.bak"))
            for version in range(found, newest):
                migrations[version](connection)
        connection.execute(f"pragma user_version = {newest}")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _version(connection: sqlite3.Connection, path: Path, newest: int) -> int:
    (mark,) = connection.execute("pragma application_id").fetchone()
    (version,) = connection.execute("pragma user_version").fetchone()
    (tables,) = connection.execute("select count(*) from sqlite_master").fetchone()
    if mark != OURS and (tables or mark or version):
        raise JournalError(
            f"{path} is a database of another program. Name another file for the journal."
        )
    if version > newest:
        raise JournalError(
            f"{path} was written by a newer Holdfast (its version is {version}, this one knows "
            f"{newest}). Upgrade Holdfast, or name another file."
        )
    return int(version)


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(f"pragma application_id = {OURS}")
    for statement in SCHEMA.split(";"):
        connection.execute(statement)


def _copy(path: Path, backup: Path) -> None:
    """All of it, also what is still in the write-ahead log; an older copy is never replaced."""
    if backup.exists():
        return
    half = backup.with_name(f"{backup.name}.half")
    half.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(half)) as target:
        source.backup(target)
    half.rename(backup)


CAUSES = (
    ("disk is full", "the disk is full. Make room"),
    ("readonly database", "it cannot be written to. Give it and its folder write permission"),
    ("is locked", "another process has been writing to it for too long. Try again"),
    ("not a database", "it is no SQLite database. Name another file; this one was left as it is"),
    ("malformed", "it is damaged. Keep it, and take what can be saved with `sqlite3 ... .recover`"),
    ("unable to open", "it cannot be opened. See that its folder exists and may be written to"),
    ("disk I/O error", "the disk reported an error. Check the disk and its free space"),
)


def sentence(path: Path, wrong: BaseException) -> str:
    """What went wrong with the file, and the way out."""
    said = str(wrong)
    for sign, cause in CAUSES:
        if sign in said:
            return f"the journal {path}: {cause} ({said})."
    return f"the journal {path}: {said}."
