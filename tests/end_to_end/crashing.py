"""A program that dies at every write of a run, and is gone on with each time.

    python -m tests.end_to_end.crashing URL FOLDER

It imports everything once and forks for each death, so that a hundred of them take seconds. The
model answers by what a request holds, so that it says the same to whoever goes on. A line of JSON
for each death says what was left in the end.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from holdfast.agent import Agent
from holdfast.core.events import Event
from holdfast.core.machine import replay
from holdfast.core.state import State
from holdfast.journal.sqlite import SqliteBook, SqliteJournal
from holdfast.journal.writer import Promise
from holdfast.testing.told import told
from holdfast.tools.base import Context, Tool
from holdfast.tools.function import tool

SESSION = "crash"
NEVER = 1_000_000
TASK = "Read the note, store it twice and send it."


class Dying:
    """A book whose process is killed at its nth write: just before it, or once it is on disk."""

    def __init__(self, book: SqliteBook, at: int, *, before: bool) -> None:
        self._book = book
        self._left = at
        self._before = before
        self.writes = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._book, name)

    def append(self, events: Sequence[Event], state: State) -> Promise[None]:
        self._left -= 1
        self.writes += 1
        if self._left == 0 and self._before:
            os.kill(os.getpid(), signal.SIGKILL)
        written = self._book.append(events, state)
        if self._left == 0:
            while not written.done:
                os.sched_yield()  # the thread that writes is on its way
            os.kill(os.getpid(), signal.SIGKILL)
        return written


class DyingJournal(SqliteJournal):
    """The journal of a process that dies at a write."""

    def __init__(self, path: Path, at: int, *, before: bool) -> None:
        super().__init__(path)
        self._at, self._before = at, before
        self.book: Dying | None = None

    async def create(self, **about: Any) -> Any:
        self.book = Dying(await super().create(**about), self._at, before=self._before)
        return self.book


def tools(folder: Path) -> list[Tool]:
    """Each leaves a line for every time it really ran."""

    def ran(name: str) -> None:
        with (folder / "ran").open("a") as file:
            file.write(f"{name}\n")

    @tool(effect="read")
    def read() -> str:
        "Read the note."
        ran("read")
        return "a note"

    @tool(effect="idempotent")
    def store(text: str, context: Context) -> str:
        "Store a text."
        ran(f"store {context.key}")
        return "stored"

    @tool
    async def send(to: str, context: Context) -> str:
        "Send it."
        await context.keep(folder / "sent")
        with (folder / "sent").open("a") as file:
            file.write(f"{to}\n")
        ran(f"send {to}")
        return f"sent to {to}"

    return [read, store, send]


async def live(url: str, folder: Path, at: int, before: bool) -> None:
    journal = DyingJournal(folder / "journal.sqlite", at, before=before)
    agent = Agent(url, tools=tools(folder), journal=journal, workspace=folder, approve=yes)
    async with agent, agent.engine.session(SESSION, new=True) as driver:
        # The user of a program that died before it had their message on disk types it again.
        await agent.resume_in(driver) or driver.state.runs or await agent.run_in(driver, TASK)
    await journal.aclose()
    assert journal.book is not None
    (folder / "writes").write_text(str(journal.book.writes))


def yes(question: object) -> bool:
    return True


def forked(work: Callable[[], object]) -> int:
    """What became of it in a process of its own: 0, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


async def left(folder: Path) -> dict[str, object]:
    """What is on disk, and whether it is whole."""
    journal = SqliteJournal(folder / "journal.sqlite")
    stored = await journal.read(SESSION)
    book = await journal.open(SESSION)
    state = book.state
    await journal.aclose()
    run = state.run
    assert run is not None
    ran = (folder / "ran").read_text().split("\n")[:-1]
    return {
        "gapless": [each.seq for each in stored] == list(range(1, len(stored) + 1)),
        "folds": replay(each.event for each in stored) == state,
        "ran": ran,
        "reason": run.stopped.reason.value if run.stopped else "",
        "text": run.stopped.text if run.stopped else "",
        "outcomes": {record.call_id: record.outcome.value for record in run.ledger.records},
        "events": len(stored),
        "writes": int((folder / "writes").read_text()),
        "log": told([each.event for each in stored]),
    }


def main(url: str, root: Path, deaths: list[list[int]]) -> None:
    """Each of the deaths is a list of writes: the process dies at the first, the one that goes on
    at the second, and so on. A negative number means just before the write."""
    warm = root / "warm"
    warm.mkdir()
    anyio.run(live, url, warm, NEVER, False)  # imports what is imported late, once for all
    for number, writes in enumerate(deaths):
        folder = root / str(number)
        folder.mkdir()
        codes = [
            forked(partial(anyio.run, live, url, folder, abs(at), at < 0))
            for at in (*writes, NEVER)
        ]
        life = {"deaths": writes, "codes": codes, **anyio.run(left, folder)}
        sys.stdout.write(json.dumps(life) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
