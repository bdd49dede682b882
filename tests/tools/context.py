"""A run, as far as the tools for files can see it: keeps files in memory, knows two results."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.core.events import FileKept
from holdfast.core.jsontext import dumped
from holdfast.core.limits import Usage
from holdfast.tools.base import Arguments, Filled, Form, Left, Output, Progress, Tool


@dataclass
class OneCall:
    """The context of every call of a test."""

    workspace: Path
    session: str = "s"
    call_id: str = "c1"
    key: str = "s/c1"
    left: Left = Left(rounds=9, calls=9, tokens=9_999, cost=9_999, seconds=99)
    results: dict[str, str] = field(default_factory=dict)
    wanted: list[str] = field(default_factory=list)
    kept: list[FileKept] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)

    def tell(self, progress: Progress) -> None:
        raise AssertionError(progress)

    async def keep(self, path: Path) -> None:
        self.keep_now(path)

    def keep_now(self, path: Path) -> None:
        assert path.is_absolute()
        assert path.resolve() == path
        blob, mode = "", 0
        if path.exists():
            blob, mode = f"b{len(self.blobs) + 1}", path.stat().st_mode & 0o7777
            self.blobs[blob] = path.read_bytes()
        self.kept.append(FileKept(self.call_id, str(path), blob, float(len(self.kept)), mode))

    async def blob(self, key: str) -> bytes:
        return self.blobs[key]

    async def result(self, call_id: str) -> str | None:
        return self.results.get(call_id)

    async def found(self, names: tuple[str, ...]) -> None:
        self.wanted += names

    async def ask(self, form: Form) -> Filled:
        raise AssertionError(form)

    async def charge(self, usage: Usage) -> None:
        raise AssertionError(usage)


async def call(tool: Tool, context: OneCall, **arguments: object) -> object:
    """What the tool returns for arguments as a model writes them."""
    return await ran(tool, context, tool.parse(dumped(arguments)))


async def ran(tool: Tool, context: OneCall, arguments: Arguments) -> object:
    running = tool.run(arguments, context)
    assert isinstance(running, Awaitable)
    value: object = await running
    return value


async def text(tool: Tool, context: OneCall, **arguments: object) -> str:
    value = await call(tool, context, **arguments)
    if isinstance(value, Output):
        assert not value.failed
        value = value.text
    assert isinstance(value, str)
    return value
