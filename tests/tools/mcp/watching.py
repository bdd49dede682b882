"""Servers under test: what they told, what they offered, and a context for calls."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from holdfast.core.limits import Usage
from holdfast.tools.base import Context, Filled, Form, Left, Output, Progress, Tool
from holdfast.tools.mcp import Patience, Server, Servers, ServerStatus, State
from holdfast.tools.mcp.asking import Sample

HERE = Path(__file__).parent / "servers"
HASTY = Patience(first_pause=0.02, longest_pause=0.1, failures=3, call=20.0)
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "SECRET": "hush"}


def old(name: str = "old", *behaviour: str, **options: object) -> Server:
    """The server that speaks the protocol of most servers."""
    return python(name, "old.py", *behaviour, **options)


def new(name: str = "new", **options: object) -> Server:
    """The server made with the SDK."""
    return python(name, "new.py", **options)


def python(name: str, script: str, *args: str, **options: object) -> Server:
    whole = {
        "name": name,
        "command": sys.executable,
        "args": (str(HERE / script), *args),
        **options,
    }
    return Server(**whole)  # type: ignore[arg-type]


@dataclass
class Caller(Context):
    """A call, and the person behind it."""

    workspace: Path = Path()
    answer: Filled = Filled(accepted=False, cancelled=True)
    told: list[Progress] = field(default_factory=list)
    asked: list[Form] = field(default_factory=list)
    session: str = "s"
    call_id: str = "c1"
    key: str = "k1"

    @property
    def left(self) -> Left:
        raise NotImplementedError

    def tell(self, progress: Progress) -> None:
        self.told.append(progress)

    async def keep(self, path: Path) -> None:
        raise NotImplementedError

    async def result(self, call_id: str) -> str | None:
        raise NotImplementedError

    async def found(self, names: tuple[str, ...]) -> None:
        raise NotImplementedError

    async def ask(self, form: Form) -> Filled:
        self.asked.append(form)
        return self.answer

    async def charge(self, usage: Usage) -> None:
        raise NotImplementedError


class Watch:
    """Runs servers and remembers what they told."""

    def __init__(
        self, *configs: Server, workspace: Path, patience: Patience, sample: Sample | None
    ) -> None:
        self.told: list[ServerStatus] = []
        self.offered: list[tuple[str, tuple[str, ...]]] = []
        self.asked: list[tuple[str, Form]] = []
        self.rang = anyio.Event()
        self.servers = Servers(
            configs,
            env=ENV,
            workspace=workspace,
            tell=self.tell,
            ask=self.ask,
            changed=self.changed,
            sample=sample,
            patience=patience,
            jitter=lambda: 0.5,
        )

    def tell(self, status: ServerStatus) -> None:
        self.told.append(status)
        self.ring()

    def changed(self, server: str, tools: tuple[Tool, ...]) -> None:
        self.offered.append((server, tuple(tool.name for tool in tools)))
        self.ring()

    async def ask(self, server: str, form: Form) -> Filled:
        self.asked.append((server, form))
        return Filled(accepted=False)

    def ring(self) -> None:
        rang, self.rang = self.rang, anyio.Event()
        rang.set()

    async def until(self, seen: Callable[["Watch"], bool]) -> None:
        with anyio.fail_after(20):
            while not seen(self):
                await self.rang.wait()

    async def until_told(self, seen: Callable[[ServerStatus], bool]) -> ServerStatus:
        await self.until(lambda watch: any(seen(status) for status in watch.told))
        return next(status for status in self.told if seen(status))

    def states(self, server: str) -> list[State]:
        return [one.state for one in self.told if one.server == server and not one.log]

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self.servers.tools if tool.name == name)

    async def call(
        self, name: str, arguments: Mapping[str, object] | None = None, caller: Caller | None = None
    ) -> Output:
        with anyio.fail_after(30):
            result = self.tool(name).run(arguments or {}, caller or Caller())
            assert not isinstance(result, AsyncIterator)
            found = await result
            assert isinstance(found, Output)
            return found


@asynccontextmanager
async def watching(
    *configs: Server,
    workspace: Path = Path("/"),
    patience: Patience = HASTY,
    sample: Sample | None = None,
    ready: bool = True,
) -> AsyncIterator[Watch]:
    watch = Watch(*configs, workspace=workspace, patience=patience, sample=sample)
    async with anyio.create_task_group() as group:
        await group.start(watch.servers.run)
        if ready:
            assert await watch.servers.ready(20)
        yield watch
        group.cancel_scope.cancel()
