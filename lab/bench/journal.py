"""What the journal costs, as ratios to bare SQLite in the same run: `python lab/bench/journal.py`.

Append: 1, 100 and 1,000 sessions, each waiting for its append before the next, against a bare loop
that writes the same rows with one commit for each round of all sessions. Open: a session of 10,000
events against reading its rows. Search: against `instr` over all texts.
"""

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from holdfast.core.events import Event
from holdfast.core.machine import replay
from holdfast.core.state import NEW
from holdfast.journal.rows import rows_of
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.journal_contract import long_log

APPENDS = {1: 600, 100: 20, 1_000: 4}
"""Of each session, by the number of sessions."""


def batch() -> list[Event]:
    """What one append of a round holds: a reply, the call it makes, a result."""
    return long_log(12)[2:6]


def raw_appends(path: Path, sessions: int, appends: int, events: list[Event]) -> float:
    bodies = [row.body for row in rows_of(events)]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = full")
        db.execute("create table events (session int, seq int, body blob, unique (session, seq))")
        began = time.perf_counter()
        for number in range(appends):
            db.execute("begin immediate")
            for session in range(sessions):
                db.executemany(
                    "insert into events values (?, ?, ?)",
                    [(session, number * 9 + place, body) for place, body in enumerate(bodies)],
                )
            db.execute("commit")
        return time.perf_counter() - began


async def our_appends(path: Path, sessions: int, appends: int, events: list[Event]) -> float:
    journal = SqliteJournal(path)
    books = [await journal.create() for _ in range(sessions)]
    began = time.perf_counter()

    async def one(number: int) -> None:
        for _ in range(appends):
            await books[number].append(events, NEW).wait()

    async with anyio.create_task_group() as group:
        for number in range(sessions):
            group.start_soon(one, number)
    took = time.perf_counter() - began
    await journal.aclose()
    return took


def on_the_loop(path: Path, events: list[Event]) -> float:
    """Microseconds that one `append` takes from the thread that calls it."""

    async def run() -> float:
        journal = SqliteJournal(path)
        book = await journal.create()
        times = []
        for _ in range(500):
            began = time.perf_counter()
            written = book.append(events, NEW)
            times.append(time.perf_counter() - began)
            await written.wait()
        await journal.aclose()
        return sorted(times)[len(times) // 2] * 1e6

    return anyio.run(run)


async def long_session(path: Path, log: list[Event]) -> None:
    journal = SqliteJournal(path, synchronous="normal")
    book, state = await journal.create(session="long"), NEW
    for start in range(0, len(log), 3):
        state = replay(log[start : start + 3], state)
        await book.append(log[start : start + 3], state).wait()
    await journal.aclose()


def best(function: Callable[[], object], times: int = 7) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        function()
        took.append(time.perf_counter() - began)
    return min(took)


def read_rows(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("select seq, body from events where session = 1 order by seq").fetchall()


async def opening(path: Path) -> float:
    """Seconds to open the session in a journal that is already at work; best of seven."""
    journal = SqliteJournal(path)
    await journal.sessions()
    took = []
    for _ in range(7):
        began = time.perf_counter()
        book = await journal.open("long")
        took.append(time.perf_counter() - began)
        await book.close()
    await journal.aclose()
    return min(took)


async def searching(path: Path) -> tuple[float, float]:
    journal = SqliteJournal(path)
    took = []
    for _ in range(7):
        began = time.perf_counter()
        await journal.search("task 90")
        took.append(time.perf_counter() - began)
    await journal.aclose()
    with closing(sqlite3.connect(path)) as db:
        scan = best(
            lambda: db.execute(
                "select count(*) from said where instr(lower(text), 'task 90')"
            ).fetchall()
        )
    return min(took), scan


def main() -> None:
    found: dict[str, float] = {}
    events = batch()
    with TemporaryDirectory() as name:
        folder = Path(name)
        for sessions, appends in APPENDS.items():
            raw = raw_appends(folder / f"raw-{sessions}.db", sessions, appends, events)
            ours = anyio.run(our_appends, folder / f"ours-{sessions}.db", sessions, appends, events)
            found[f"append, {sessions} sessions: ours / bare"] = ours / raw
            found[f"append, {sessions} sessions: appends a second"] = sessions * appends / ours
        found["append: microseconds on the loop"] = on_the_loop(folder / "loop.db", events)
        path = folder / "long.db"
        anyio.run(long_session, path, long_log(10_000))
        rows, opened = best(lambda: read_rows(path)), anyio.run(opening, path)
        found["open 10,000 events: milliseconds"] = opened * 1e3
        found["open 10,000 events: ours / reading the rows"] = opened / rows
        search, scan = anyio.run(searching, path)
        found["search: milliseconds"] = search * 1e3
        found["search: ours / scanning the texts"] = search / scan
    print(json.dumps({name: round(value, 2) for name, value in found.items()}, indent=2))


if __name__ == "__main__":
    main()
