"""What a running tool holds of its run: the `Context` that the gateway hands it."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from holdfast.core.events import Charged, FileKept, ToolsFound
from holdfast.core.limits import Usage
from holdfast.core.messages import ToolCall
from holdfast.tools.base import Filled, Form, Left, Progress, ToolError

if TYPE_CHECKING:
    from holdfast.runtime.driver import Driver

LARGEST_KEPT = 64 * 1024 * 1024
"""Bytes of a file that are kept before it is changed."""


class Hand:
    def __init__(self, driver: "Driver", call: ToolCall) -> None:
        self._driver = driver
        self._kept: set[Path] = set()
        self.session = driver.id
        self.call_id = call.id
        self.key = sha256(f"{driver.id}/{call.id}".encode()).hexdigest()

    @property
    def workspace(self) -> Path:
        return self._driver.workspace

    @property
    def left(self) -> Left:
        return self._driver.left

    def tell(self, progress: Progress) -> None:
        self._driver.tell_progress(progress, self.call_id)

    async def keep(self, path: Path) -> None:
        if path in self._kept:
            return
        found = await anyio.to_thread.run_sync(content_of, path)
        blob, mode = "", 0
        if found is not None:
            content, mode = found
            blob = await self._driver.keep_blob(content)
        event = FileKept(self.call_id, str(path), blob, self._driver.now(), mode)
        await self._driver.record(event, durable=True)
        self._kept.add(path)

    async def result(self, call_id: str) -> str | None:
        return await self._driver.result(call_id)

    async def found(self, names: tuple[str, ...]) -> None:
        await self._driver.record(ToolsFound(names, self._driver.now()))

    async def ask(self, form: Form) -> Filled:
        return await self._driver.fill(replace(form, call_id=self.call_id))

    async def charge(self, usage: Usage) -> None:
        await self._driver.record(Charged(self.call_id, usage, self._driver.now()))


def content_of(path: Path) -> tuple[bytes, int] | None:
    """What is in a file, and its permission bits; None if there is none."""
    try:
        status = path.stat()
        if status.st_size > LARGEST_KEPT:
            raise ToolError(
                f"{path} has {status.st_size:,} bytes, more than can be kept for an undo "
                f"({LARGEST_KEPT:,}). It was not changed."
            )
        return path.read_bytes(), status.st_mode & 0o7777
    except FileNotFoundError:
        return None
