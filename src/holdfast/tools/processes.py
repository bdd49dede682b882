"""One command as a process: started, listened to, and ended with all that it started.

Every command runs below `confine`, which stays beside it. Between us there is a pipe, the lifeline:
when we close it, or die, `confine` ends whatever is left. If a command ends `confine` itself, what it
started is found by a variable of the call, and ended by us; one that has cleared it is not found.
"""

import codecs
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream, Process

from holdfast.tools.sandbox import CONFINE, python

MOST = 5_000_000
"""Bytes of each stream that are kept: half from its beginning, half from its end."""
DRAIN = 0.5
"""Seconds to read what is still in the pipes when the command has ended."""
PATIENCE = 7.0
"""Seconds after the grace in which `confine` must have ended everything, by force."""
CALL = "HOLDFAST_CALL"
"""The variable by which the processes of a call are known."""
ROUNDS = 50
TELLS_EVERY = 0.1
MOST_TOLD = 4_000
"""Characters of one piece of progress: people see the rest in the result."""
ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles and links
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # strings for the terminal
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
BINARY = re.compile(rb"\x00")


class Kept:
    """The beginning and the end of what a stream brought, in bounded memory."""

    def __init__(self, most: int = MOST) -> None:
        self.half = most // 2
        self.head = bytearray()
        self.tail = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = self.half - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > 2 * self.half:  # not each time: cutting moves all of it
            del self.tail[: -self.half]

    @property
    def is_binary(self) -> bool:
        return BINARY.search(bytes(self.head[:8_000])) is not None

    def text(self) -> str:
        if self.is_binary:
            return f"[{self.size} bytes that are no text]"
        left_out = self.size - self.half * 2
        if left_out <= 0:
            return cleaned((self.head + self.tail).decode(errors="replace"))
        head = cleaned(self.head.decode(errors="replace"))
        tail = cleaned(self.tail[-self.half :].decode(errors="replace"))
        return f"{head}\n[{left_out} of {self.size} bytes are left out here]\n{tail}"


def cleaned(text: str) -> str:
    """Text as a terminal would have left it: no colours, and only the last state of a line that
    was written over, such as a progress bar."""
    plain = ESCAPES.sub("", text).replace("\r\n", "\n")
    if "\r" in plain:
        plain = "\n".join(last_state(line) for line in plain.split("\n"))
    return CONTROLS.sub("", plain)


def last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state]
    return states[-1] if states else ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int | None
    """Below zero: the signal that ended it. None: nobody can say."""
    out: Kept
    err: Kept
    left: int = 0
    """Processes that it left running, and that were ended."""
    timed_out: bool = False


@dataclass(slots=True)
class Running:
    process: Process
    lifeline: int
    status: int
    said: bytes | None = None

    async def ended(self) -> None:
        """Wait until `confine` says how it ended. Not for the process: some versions of Python
        count it as running as long as anybody holds its pipes."""
        await anyio.wait_readable(self.status)

    async def ended_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds) as limit:
            await self.ended()
        return not limit.cancelled_caught

    def let_go(self) -> None:
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def outcome(self) -> tuple[int | None, int]:
        """How the command ended; None if nobody said so, because `confine` was ended first."""
        if self.said is None:
            try:
                self.said = os.read(self.status, 64)
            except BlockingIOError:
                return None, 0
        said = self.said.split()
        return (int(said[0]), int(said[1])) if len(said) == 2 else (None, 0)


@asynccontextmanager
async def started(
    line: Sequence[str], *, cwd: Path, environment: Mapping[str, str], grace: float
) -> AsyncIterator[Running]:
    """`line`: options for `confine`, `--`, and the command. When the block ends, nothing is left."""
    ours, status = os.pipe()
    theirs, lifeline = os.pipe()
    os.set_blocking(ours, False)
    mark = secrets.token_hex(16)
    command = (*python(), CONFINE, "--keep", "--grace", str(grace), "--status", str(status), *line)
    try:
        process = await anyio.open_process(
            command, stdin=theirs, stdout=PIPE, stderr=PIPE, cwd=cwd,
            env={**environment, CALL: mark},
            start_new_session=True, pass_fds=(status,),
        )  # fmt: skip
    except BaseException:
        os.close(lifeline)
        os.close(ours)
        raise
    finally:
        os.close(theirs)
        os.close(status)
    running = Running(process, lifeline, ours)
    try:
        yield running
    finally:
        running.let_go()
        with anyio.CancelScope(shield=True):
            await running.ended_within(grace + PATIENCE)
            if running.outcome()[0] is None:
                await to_thread.run_sync(end_marked, mark)
            with anyio.move_on_after(PATIENCE):
                await process.aclose()
        os.close(ours)


async def run(
    line: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    seconds: float,
    grace: float,
    tell: Callable[[str], None],
) -> Ended:
    """Run a command to its end or to its time-out; `tell` gets its output while it runs."""
    out, err = Kept(), Kept()
    told = Told(tell)
    timed_out = False
    async with started(line, cwd=cwd, environment=environment, grace=grace) as running:
        async with anyio.create_task_group() as group:
            open_pipes = 2

            async def listen(stream: ByteReceiveStream | None, kept: Kept) -> None:
                nonlocal open_pipes
                decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
                try:
                    while stream is not None:
                        data = await stream.receive()
                        kept.add(data)
                        told.add(decoder.decode(data))
                except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                    pass
                open_pipes -= 1
                if not open_pipes:
                    drained.set()

            drained = anyio.Event()
            group.start_soon(listen, running.process.stdout, out)
            group.start_soon(listen, running.process.stderr, err)
            group.start_soon(told.regularly)
            over = await running.ended_within(seconds)
            if not over:
                timed_out = True
                running.let_go()
                over = await running.ended_within(grace + PATIENCE)
            with anyio.move_on_after(DRAIN):
                await drained.wait()
            group.cancel_scope.cancel()
        told.now()
        code, left = running.outcome() if over else (None, 0)
    return Ended(code, out, err, left, timed_out)


def end_marked(mark: str) -> None:
    """End the processes of a call by force, until there are none: new ones may start meanwhile."""
    sign = f"{CALL}={mark}".encode()
    for _ in range(ROUNDS):
        left = [
            process for process in map(int, filter(str.isdigit, listed())) if bears(process, sign)
        ]
        if not left:
            return
        for process in left:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)


def listed() -> list[str]:
    """Elsewhere than on Linux nobody can be asked for the environment of a process."""
    return os.listdir("/proc") if sys.platform == "linux" else []  # noqa: PTH208


def bears(process: int, sign: bytes) -> bool:
    try:
        return sign in Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


class Told:
    """Output on its way to whoever watches: not more often than they can read."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self.pending = ""
        self.last = 0.0

    def add(self, text: str) -> None:
        self.pending = (self.pending + text)[-2 * MOST_TOLD :]
        if time.monotonic() - self.last >= TELLS_EVERY:
            self.now()

    def now(self) -> None:
        if text := cleaned(self.pending)[-MOST_TOLD:]:
            self.tell(text)
        self.pending = ""
        self.last = time.monotonic()

    async def regularly(self) -> None:
        while True:
            await anyio.sleep(TELLS_EVERY)
            if self.pending:
                self.now()
