"""A child process with the engine in it: started, watched and ended.

It may be used from one event loop after another, so it is a plain process and not one of anyio's,
which ends with its loop. What goes over its HTTP is left to `chat`.
"""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from types import TracebackType
from typing import IO

import anyio
from anyio import to_thread

from holdfast.core.events import Failure
from holdfast.models.base import ModelError, Tell, Waiting
from holdfast.models.local.weights import unusable

ENGINE = "xllamacpp"
CHILD = str(Path(__file__).with_name("child.py"))
NOT_INSTALLED = (
    "the engine for embedded models is not installed; get it with: pip install 'holdfast[local]'"
)
WINDOW = 8_192
"""What SmolLM2 was trained for; a larger model can do more, and takes the memory for it."""
LOOK = 0.02
"""Seconds between two looks at a child that is loading."""
TELL = 5.0
"""Seconds between two words about it."""
DYING = 2.0
"""Seconds in which the end of a process follows the end of its connections."""
STAMP = re.compile(r"^[\d.]+ [EW] ")
SHOWN = 4
"""Lines of the log that people are shown."""
SIGNALS: Mapping[str, str] = {
    "SIGILL": ": this processor lacks an instruction that the engine was built with",
    "SIGKILL": ": somebody ended it, or there was no memory left",
}


@dataclass(frozen=True, slots=True)
class Running:
    """Where an engine answers, and to whom."""

    url: str
    key: str


class Engine:
    """llama.cpp with one file of weights. As a block, `async with Engine(path) as running:`."""

    def __init__(
        self,
        weights: Path,
        *,
        window: int = WINDOW,
        threads: int | None = None,
        patience: float = 300.0,
        key: str = "",
    ) -> None:
        """`patience`: the seconds that loading may take. `key`: made up, if not given."""
        self._weights = weights
        self._window = window
        self._threads = threads or threads_by_default()
        self._patience = patience
        self._key = key or secrets.token_urlsafe(24)
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    async def start(self, tell: Tell = lambda piece: None, about: str = "") -> Running:
        """Load the model. `about`: what people call it. Raises `ModelError`."""
        check_engine()
        self._check_size()
        await self.aclose()
        try:
            line = await self._loaded(self._launched(), tell, about or self._weights.name)
        except BaseException:
            await self.aclose()
            raise
        return Running(json.loads(line)["address"], self._key)

    async def aclose(self) -> None:
        """End the child, whatever it is doing. `start` makes another."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(process.wait)
        for pipe in (process.stdin, process.stdout, self._log):
            if pipe is not None:
                with suppress(OSError):  # an order that it never read
                    pipe.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def ended(self) -> str:
        """How the child died, in a sentence for people; empty while it lives."""
        code = self._process.poll() if self._process else None
        if code is None:
            return ""
        how = f"with code {code}"
        if code < 0:
            name = signal.Signals(-code).name
            how = f"by {name}{SIGNALS.get(name, '')}"
        said = self._last_words()
        return (
            f"the engine for {self._weights.name} died {how}{f'. It said: {said}' if said else ''}"
        )

    async def soon_ended(self) -> str:
        """The same, for when its connections have broken: its own end may follow in a moment."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                await to_thread.run_sync(self._process.wait, DYING, abandon_on_cancel=True)
        return self.ended()

    async def __aenter__(self) -> Running:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _check_size(self) -> None:
        size, memory = self._weights.stat().st_size, memory_available()
        if memory is not None and size > memory:
            raise unusable(
                f"{self._weights.name} has {megabytes(size)}, and only {megabytes(memory)} of "
                "memory are free; take a smaller model, or one with fewer bits"
            )

    def _launched(self) -> "Future[bytes]":
        """Start the child; its first line comes in the future, empty if it died before."""
        self._log = TemporaryFile()
        self._process = process = subprocess.Popen(
            # By its path, so that it imports nothing of ours; -P, so that nothing that happens to
            # lie beside it is taken for the engine.
            (sys.executable, "-P", CHILD),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # a Ctrl-C at the terminal is not for the engine
        )
        order = {
            "weights": str(self._weights),
            "window": self._window,
            "threads": self._threads,
            "key": self._key,
            "parent": os.getpid(),
        }
        said: Future[bytes] = Future()

        def converse() -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()
                said.set_result(process.stdout.readline())
            except (OSError, ValueError):  # it is dead, or was ended by us
                said.set_result(b"")

        Thread(target=converse, name="holdfast: engine", daemon=True).start()
        return said

    async def _loaded(self, said: "Future[bytes]", tell: Tell, about: str) -> bytes:
        why = f"{about} is being loaded, {megabytes(self._weights.stat().st_size)}"
        next_word = anyio.current_time()
        last_look = next_word + self._patience
        while not said.done():
            if (now := anyio.current_time()) >= last_look:
                raise ModelError(
                    Failure.GONE,
                    f"the engine for {self._weights.name} did not open its port within "
                    f"{self._patience:g} seconds. {self._last_words()}".strip(),
                )
            if now >= next_word:
                tell(Waiting(why, TELL, self._weights.name))
                next_word += TELL
            await anyio.sleep(LOOK)
        if not said.result():
            raise ModelError(Failure.GONE, await self.soon_ended() or "the engine closed its pipe")
        return said.result()

    def _last_words(self) -> str:
        """What stands in the log, without what is said twice. The first error says most."""
        if self._log is None:
            return ""
        self._log.seek(0)
        text = self._log.read().decode("utf-8", "replace")
        lines = list(dict.fromkeys(STAMP.sub("", each).strip() for each in text.splitlines()))
        half = SHOWN // 2
        return " / ".join(lines if len(lines) <= SHOWN else lines[:half] + lines[-half:])


def check_engine() -> None:
    if find_spec(ENGINE) is None:
        raise unusable(NOT_INSTALLED)


def threads_by_default() -> int:
    """Half of the cores: with all of them each waits for whichever has something else to do."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    return max(1, cores // 2)


def memory_available() -> int | None:
    """Bytes that can be had without taking them from others; None if nobody says."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    kilobytes = found.get("MemAvailable", "").removesuffix("kB").strip()
    return int(kilobytes) * 1024 if kilobytes.isdigit() else None


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size < 1e10 else f"{size / 1e9:,.0f} GB"
