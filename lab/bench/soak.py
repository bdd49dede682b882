"""A thousand sessions at once in one process: is anything lost, and what does one cost?

    python -m lab.bench.soak [SESSIONS] [ROUNDS]

Each session makes so many rounds with a tool against a server in a process of its own, all of them
at once, with the journal on disk. At the end the process must be as it was: no task, thread, file or
socket left. Then some run again with every allocation counted, and stay open, idle: what is still
alive of it, beyond the messages themselves, is what an idle session costs. Connections, and what a
client keeps to encode a message only once, are given up before; the client bounds both for all.
"""

import gc
import os
import subprocess
import sys
import threading
import tracemalloc
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
POOLS = ("AnyIO worker", "holdfast tool")
"""Threads that wait for further work, and end when none comes for ten seconds."""
WARM = 10
COUNTED = 100
"""Sessions whose memory is counted; with every allocation traced they are slow."""
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
    await worked(base, WARM, rounds, faults)  # imports what is imported late
    before = left_open()
    await worked(base, sessions, rounds, faults)
    after = left_open()
    print(f"left open: before {before}, after {after}")
    faults += [f"{name} left: {after[name]}" for name in after if after[name] > before[name]]
    await worked(base, COUNTED, rounds, faults, counts=True)
    return faults


async def worked(
    base: str, sessions: int, rounds: int, faults: list[str], *, counts: bool = False
) -> None:
    with TemporaryDirectory() as folder:
        journal = SqliteJournal(Path(folder) / "journal.sqlite")
        await measured(base, journal, folder, sessions, rounds, faults, counts=counts)
        await journal.aclose()


async def measured(
    base: str,
    journal: SqliteJournal,
    folder: str,
    sessions: int,
    rounds: int,
    faults: list[str],
    *,
    counts: bool,
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
        if counts:
            await agent.run("Read all the receipts.")  # whatever is made once
            await model.aclose()
            gc.collect()
            tracemalloc.start()
        before = resident()
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
        await model.aclose()
        said = sum(spoken(driver.state) for driver in drivers) // sessions
        if counts:
            gc.collect()
            each = tracemalloc.get_traced_memory()[0] // sessions - said
            tracemalloc.stop()
            print(f"idle: {each:,} bytes a session beyond {said:,} of messages")
            if each > GOAL:
                faults.append(f"an idle session costs {each:,} bytes, more than {GOAL:,}")
        elif sessions > WARM:
            rate = cpu / sessions / rounds * 1e3
            print(f"{sessions} sessions of {rounds} rounds: {seconds:.1f} s, {cpu:.1f} s of CPU")
            print(f"{rate:.2f} ms of CPU a round")
            grown = (resident() - before) // sessions
            print(f"the process has grown by {grown:,} bytes a session, as the allocator left it")
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
        "threads": sum(not each.name.startswith(POOLS) for each in threading.enumerate()),
        "tasks": len(anyio.get_running_tasks()),
    }


if __name__ == "__main__":
    main(*(int(each) for each in [*sys.argv[1:], "1000", "20"][:2]))
