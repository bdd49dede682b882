"""A thousand sessions at once in one process: is anything lost, and what does one cost?

    python -m lab.bench.soak [SESSIONS] [ROUNDS]

Each session makes so many rounds with a tool against a server in a process of its own, all of them
at once, with the journal on disk. Then all stay open, idle, and their memory is measured: beyond
the messages themselves, and beside what a bare loop keeps. At the end the process must be as it was:
no task, thread, file or socket left.
"""

import gc
import os
import subprocess
import sys
import threading
from contextlib import AsyncExitStack
from ctypes import CDLL
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, process_time

import anyio

from holdfast.agent import Agent
from holdfast.core.events import RunStopped
from holdfast.core.limits import Limits
from holdfast.core.machine import replay
from holdfast.core.messages import AssistantMessage
from holdfast.core.state import State
from holdfast.journal.sqlite import SqliteJournal
from holdfast.models.chat import Chat
from holdfast.runtime.driver import Driver
from holdfast.tools.function import tool
from lab.bench import round_cost

GOAL = 50_000
"""Bytes of an idle session beyond its messages."""
CHECKED = 50
"""Sessions whose log is folded again and compared."""


def main(sessions: int, rounds: int) -> None:
    serve = [sys.executable, round_cost.__file__, "serve"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            base = f"http://127.0.0.1:{int(server.stdout.readline())}/{rounds}/v1"
            faults = anyio.run(partial(soaked, base, sessions, rounds))
        finally:
            server.kill()
    for fault in faults:
        print(f"FAILED  {fault}")
    sys.exit(bool(faults))


async def soaked(base: str, sessions: int, rounds: int) -> list[str]:
    faults: list[str] = []
    await worked(base, 10, rounds, faults)  # imports what is imported late
    before = left_open()
    await worked(base, sessions, rounds, faults)
    after = left_open()
    print(f"left open: before {before}, after {after}")
    faults += [f"{name} left: {after[name]}" for name in after if after[name] > before[name]]
    return faults


async def worked(base: str, sessions: int, rounds: int, faults: list[str]) -> None:
    with TemporaryDirectory() as folder:
        journal = SqliteJournal(Path(folder) / "journal.sqlite")
        await measured(base, journal, folder, sessions, rounds, faults)
        await journal.aclose()


async def measured(
    base: str, journal: SqliteJournal, folder: str, sessions: int, rounds: int, faults: list[str]
) -> None:
    model = Chat(base, "m", window=round_cost.WINDOW)
    agent = Agent(
        model,
        tools=[tool(round_cost.read, effect="read")],
        journal=journal,
        limits=Limits(rounds=rounds + 1),
        workspace=folder,
    )
    async with agent, AsyncExitStack() as kept:
        memory = resident()
        drivers = [await kept.enter_async_context(agent.engine.session()) for _ in range(sessions)]
        began, spent = monotonic(), process_time()
        texts: list[str] = []

        async def one(driver: Driver) -> None:
            texts.append((await agent.run_in(driver, "Read all the receipts.")).text)

        async with anyio.create_task_group() as group:
            for driver in drivers:
                group.start_soon(one, driver)
        seconds, cpu = monotonic() - began, process_time() - spent
        if texts != ["Done."] * sessions:
            faults.append(f"{sum(text == 'Done.' for text in texts)} of {sessions} runs answered")
        await model.aclose()  # connections that nobody uses, as a server would close them
        said = sum(spoken(driver.state) for driver in drivers)
        each = (resident() - memory - said) // sessions
        if sessions > 10:
            print(f"{sessions} sessions of {rounds} rounds: {seconds:.1f} s, {cpu:.1f} s of CPU")
            print(f"{cpu / sessions / rounds * 1e3:.2f} ms of CPU a round")
            print(f"idle: {each:,} bytes a session beyond {said // sessions:,} of messages")
            if each > GOAL:
                faults.append(f"an idle session costs {each:,} bytes, more than {GOAL:,}")
            await checked(journal, drivers, rounds, faults)


async def checked(
    journal: SqliteJournal, drivers: list[Driver], rounds: int, faults: list[str]
) -> None:
    for place, driver in enumerate(drivers):
        log = await journal.read(driver.id)
        stops = sum(isinstance(each.event, RunStopped) for each in log)
        if [each.seq for each in log] != list(range(1, len(log) + 1)) or stops != 1:
            faults.append(f"the log of {driver.id} has a gap, or no end")
        if place % (len(drivers) // CHECKED or 1) == 0:
            if replay(each.event for each in log) != driver.state:
                faults.append(f"the log of {driver.id} does not fold to its state")


def spoken(state: State) -> int:
    """Bytes of the messages themselves."""
    size = 0
    for entry in (*state.history.head, *state.history.body):
        size += len(entry.message.text)
        if isinstance(entry.message, AssistantMessage):
            size += sum(len(call.arguments) for call in entry.message.calls)
    return size


def resident() -> int:
    """Bytes of memory that the process really has."""
    gc.collect()
    if sys.platform == "linux":
        CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def left_open() -> dict[str, int]:
    gc.collect()
    return {
        "files": sum(1 for _ in Path("/proc/self/fd").iterdir()),
        "threads": sum("AnyIO" not in each.name for each in threading.enumerate()),  # a pool
        "tasks": len(anyio.get_running_tasks()),
    }


if __name__ == "__main__":
    main(*(int(each) for each in [*sys.argv[1:], "1000", "20"][:2]))
