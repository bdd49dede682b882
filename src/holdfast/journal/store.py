"""The sentences in SQL: each function is one thing that is done to the tables of a journal.

They run inside a transaction of the caller's, which `writer` and `sqlite` make.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from holdfast.core.events import Event, FollowedUp, RunStopped, UserSpoke
from holdfast.core.messages import clean
from holdfast.journal import searching
from holdfast.journal.base import About, Busy, Fenced, Hit, JournalError, NoSuchSession, Stored
from holdfast.journal.codec import Unreadable
from holdfast.journal.owner import Owner, is_alive, owner_of
from holdfast.journal.rows import Reading, Row, key_of, packed, unpacked

TITLE = 80
"""Characters of the first message that make the title of a session."""
RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A session that is ours to write."""

    n: int
    id: str
    epoch: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an append tells of the session as a whole."""

    at: float = 0.0
    """The newest time in it."""
    title: str = ""
    status: str = ""
    """Empty: as before."""
    said: tuple[tuple[int, str], ...] = field(default=())
    """Place in the append and words, for the search."""


def told(events: Sequence[Event]) -> Told:
    at, title, status = 0.0, "", ""
    said: list[tuple[int, str]] = []
    for place, event in enumerate(events):
        at = max(at, getattr(event, "at", 0.0))
        if words := searching.said(event):
            said.append((place, words))
        if isinstance(event, UserSpoke):
            title = title or title_of(event.text)
        status = status_after(event) or status
    return Told(at=at, title=title, status=status, said=tuple(said))


def status_after(event: Event) -> str:
    """Empty: as before."""
    if isinstance(event, RunStopped):
        return event.reason.value
    return RUNNING if isinstance(event, UserSpoke | FollowedUp) else ""


def title_of(text: str) -> str:
    line = " ".join(clean(text[: TITLE * 4]).split())
    return line if len(line) <= TITLE else f"{line[: TITLE - 1].rstrip()}…"


# --- sessions -------------------------------------------------------------------------------

ABOUT = "select id, title, folder, model, began, changed, seq, parent, status, owner, beat, labels"


def insert(db: sqlite3.Connection, about: About) -> None:
    db.execute(
        "insert into sessions (id, title, folder, model, parent, labels, began, changed, status)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *map(clean, (about.id, about.title, about.folder, about.model, about.parent)),
            json.dumps(about.labels),
            about.began,
            about.changed,
            about.status,
        ),
    )


def exists(db: sqlite3.Connection, session: str) -> bool:
    found = db.execute("select 1 from sessions where id = ?", (clean(session),))
    return found.fetchone() is not None


def number_of(db: sqlite3.Connection, session: str) -> int:
    found = db.execute("select n from sessions where id = ?", (clean(session),)).fetchone()
    if found is None:
        raise missing(session, (each for (each,) in db.execute("select id from sessions")))
    return int(found[0])


def missing(session: str, others: Iterable[str]) -> NoSuchSession:
    close = get_close_matches(session, others, n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else "."
    return NoSuchSession(f"there is no session '{session}'{hint}")


def about(db: sqlite3.Connection, session: str, now: float) -> About:
    n = number_of(db, session)
    return about_of(db.execute(f"{ABOUT} from sessions where n = ?", (n,)).fetchone(), now)


def sessions(
    db: sqlite3.Connection, folder: str | None, parent: str | None, limit: int, now: float
) -> list[About]:
    found = db.execute(
        f"{ABOUT} from sessions where (?1 is null or folder = ?1) and (?2 is null or parent = ?2)"
        " order by changed desc, n desc limit ?3",
        (folder, parent, max(0, limit)),
    )
    return [about_of(row, now) for row in found]


def about_of(row: tuple[object, ...], now: float) -> About:
    *columns, owner, beat, labels = row
    names = "id", "title", "folder", "model", "began", "changed", "events", "parent", "status"
    values: dict[str, object] = dict(zip(names, columns, strict=True))
    who = owner_of(str(owner))
    here = who is not None and is_alive(who, float(str(beat)), now)
    pairs = tuple((name, value) for name, value in json.loads(str(labels)))
    return About(**values, owner=who.in_words() if who and here else "", labels=pairs)  # type: ignore[arg-type]


def rename(db: sqlite3.Connection, session: str, title: str) -> None:
    n = number_of(db, session)
    db.execute("update sessions set title = ? where n = ?", (clean(title), n))


def delete(db: sqlite3.Connection, session: str, now: float) -> None:
    n = number_of(db, session)
    refuse_if_open(db, session, n, now)
    db.execute("delete from said where rowid in (select n from events where session = ?)", (n,))
    db.execute("delete from events where session = ?", (n,))
    db.execute("delete from snapshots where session = ?", (n,))
    db.execute("delete from uses where session = ?", (n,))
    db.execute("delete from sessions where n = ?", (n,))
    db.execute("delete from blobs where key not in (select key from uses)")


def fork(db: sqlite3.Connection, session: str, upto: int | None, made: About) -> None:
    old = number_of(db, session)
    (seq,) = db.execute("select seq from sessions where n = ?", (old,)).fetchone()
    last = seq if upto is None else upto
    if not 0 <= last <= seq:
        raise JournalError(f"session '{session}' has {seq} events; it has no event {last}.")
    insert(db, made)
    new = number_of(db, made.id)
    db.execute(
        "insert into events (session, seq, aside, body) select ?, seq, aside, body from events"
        " where session = ? and seq <= ? order by seq",
        (new, old, last),
    )
    db.execute(
        "insert into said (rowid, text) select mine.n, said.text from said"
        " join events as theirs on theirs.n = said.rowid and theirs.session = ?"
        " join events as mine on mine.session = ? and mine.seq = theirs.seq",
        (old, new),
    )
    db.execute("insert into uses select ?, key from uses where session = ?", (new, old))
    db.execute("update sessions set seq = ?, status = ? where n = ?", (last, status(db, new), new))


def status(db: sqlite3.Connection, n: int) -> str:
    """As the log tells it."""
    reading = Reading(lambda key: blob(db, key))
    newest_first = "select aside, body from events where session = ? order by seq desc"
    for aside, body in db.execute(newest_first, (n,)):
        if found := status_after(reading.event(body, aside=bool(aside))):
            return found
    return ""


# --- who may write --------------------------------------------------------------------------


def claim(db: sqlite3.Connection, session: str, owner: Owner, now: float) -> Claimed:
    """The session as ours, in an epoch of its own; `Busy` if somebody living has it."""
    n = number_of(db, session)
    refuse_if_open(db, session, n, now)
    db.execute(
        "update sessions set owner = ?, beat = ?, epoch = epoch + 1 where n = ?",
        (owner.as_text(), now, n),
    )
    (epoch, seq) = db.execute("select epoch, seq from sessions where n = ?", (n,)).fetchone()
    return Claimed(n, session, epoch, seq)


def refuse_if_open(db: sqlite3.Connection, session: str, n: int, now: float) -> None:
    owner, beat = db.execute("select owner, beat from sessions where n = ?", (n,)).fetchone()
    who = owner_of(owner)
    if who is not None and is_alive(who, beat, now):
        raise Busy(
            f"session '{session}' is open in {who.in_words()}. Close it there, or fork the session."
        )


def release(db: sqlite3.Connection, claimed: Claimed) -> None:
    db.execute(
        "update sessions set owner = '' where n = ? and epoch = ?", (claimed.n, claimed.epoch)
    )


def beat(db: sqlite3.Connection, open_now: Iterable[Claimed], now: float) -> None:
    db.executemany(
        "update sessions set beat = ? where n = ? and epoch = ?",
        [(now, claimed.n, claimed.epoch) for claimed in open_now],
    )


# --- events ---------------------------------------------------------------------------------


def append(
    db: sqlite3.Connection, claimed: Claimed, after: int, rows: Sequence[Row], tells: Told
) -> None:
    """All of them, if nobody else has written or may write now; else `Fenced`, and none."""
    changed = db.execute(
        "update sessions set seq = ?, changed = max(changed, ?),"
        " status = case ?3 when '' then status else ?3 end,"
        " title = case title when '' then ?4 else title end"
        " where n = ? and epoch = ? and seq = ?",
        (
            after + len(rows),
            tells.at,
            tells.status,
            tells.title,
            claimed.n,
            claimed.epoch,
            after,
        ),
    ).rowcount
    if not changed:
        raise fenced(claimed.id)
    for row in rows:
        for key, content in row.aside:
            store(db, claimed.n, key, content)
    (last,) = db.execute("select coalesce(max(n), 0) from events").fetchone()
    db.executemany(
        "insert into events (n, session, seq, aside, body) values (?, ?, ?, ?, ?)",
        [
            (last + place, claimed.n, after + place, bool(row.aside), row.body)
            for place, row in enumerate(rows, 1)
        ],
    )
    for place, words in tells.said:
        values = last + 1 + place, searching.spaced(words)
        db.execute("insert into said (rowid, text) values (?, ?)", values)


def fenced(session: str) -> Fenced:
    return Fenced(
        f"session '{session}' was taken over by another process. What was to be written here does "
        "not count; open the session again to go on."
    )


def read(
    db: sqlite3.Connection, session: str, n: int, after: int = 0, limit: int | None = None
) -> list[Stored]:
    reading = Reading(lambda key: blob(db, key))
    rows = db.execute(
        "select seq, aside, body from events where session = ? and seq > ? order by seq limit ?",
        (n, after, -1 if limit is None else max(0, limit)),
    )
    found = []
    for seq, aside, body in rows:
        try:
            found.append(Stored(seq, reading.event(body, aside=bool(aside))))
        except Unreadable as wrong:
            raise Unreadable(f"event {seq} of session '{session}': {wrong}") from None
    return found


# --- blobs ----------------------------------------------------------------------------------


def keep(db: sqlite3.Connection, claimed: Claimed, content: bytes) -> str:
    mine = "select 1 from sessions where n = ? and epoch = ?"
    if not db.execute(mine, (claimed.n, claimed.epoch)).fetchone():
        raise fenced(claimed.id)
    key = key_of(content)
    store(db, claimed.n, key, content)
    return key


def store(db: sqlite3.Connection, n: int, key: str, content: bytes) -> None:
    if not db.execute("select 1 from blobs where key = ?", (key,)).fetchone():
        is_packed, small = packed(content)
        db.execute("insert into blobs values (?, ?, ?)", (key, is_packed, small))
    db.execute("insert or ignore into uses values (?, ?)", (n, key))


def blob(db: sqlite3.Connection, key: str) -> bytes:
    found = db.execute("select packed, content from blobs where key = ?", (key,)).fetchone()
    if found is None:
        raise JournalError(f"the journal holds nothing under the key '{key}'.")
    return unpacked(found[1], is_packed=bool(found[0]))


# --- search ---------------------------------------------------------------------------------

CANDIDATES = 2_000
"""Matches that are looked at for the best one of each session."""


def search(db: sqlite3.Connection, text: str, limit: int) -> list[Hit]:
    """The best match of each session, best first."""
    query = searching.query(text)
    if not query:
        return []
    best: dict[str, tuple[int, int]] = {}
    found = db.execute(
        "select sessions.id, events.seq, said.rowid from"
        " (select rowid, rank from said where said match ? order by rank limit ?) as said"
        " join events on events.n = said.rowid join sessions on sessions.n = events.session"
        " order by said.rank",
        (query, CANDIDATES),
    )
    for session, seq, row in found:
        if len(best) >= limit:
            break
        best.setdefault(session, (seq, row))
    return [Hit(session, seq, _excerpt(db, query, row)) for session, (seq, row) in best.items()]


def _excerpt(db: sqlite3.Connection, query: str, row: int) -> str:
    (marked,) = db.execute(
        "select snippet(said, 0, ?, ?, '…', 24) from said where said match ? and rowid = ?",
        (searching.OPEN, searching.CLOSE, query, row),
    ).fetchone()
    return searching.excerpt(marked)
