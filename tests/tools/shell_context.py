"""A stand-in for the run around a tool: it keeps what is told, and has nothing to give."""

from dataclasses import dataclass, field
from pathlib import Path

import anyio

from holdfast.core.limits import Usage
from holdfast.tools.base import Filled, Form, Left, Progress


@dataclass
class ShellContext:
    workspace: Path
    session: str = "session"
    call_id: str = "call"
    key: str = "key"
    left: Left = Left(rounds=1, calls=1, tokens=1, cost=1, seconds=1.0)
    told: list[str] = field(default_factory=list)
    heard: anyio.Event = field(default_factory=anyio.Event)
    """Set by the first progress."""

    def tell(self, progress: Progress) -> None:
        self.told.append(progress.text)
        self.heard.set()

    async def keep(self, path: Path) -> None:
        raise AssertionError("the shell changes no files itself")

    async def result(self, call_id: str) -> str | None:
        return None

    async def found(self, names: tuple[str, ...]) -> None:
        raise AssertionError("the shell finds no tools")

    async def ask(self, form: Form) -> Filled:
        raise AssertionError("the shell asks nothing")

    async def charge(self, usage: Usage) -> None:
        raise AssertionError("the shell spends nothing")
