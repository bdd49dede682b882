"""A stand-in for the run around a tool: it keeps what is told, and has nothing to give. And what
tests of the shell share: running a command, and a repository to run it in."""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from holdfast.core.limits import Usage
from holdfast.tools.base import Filled, Form, Left, Output, Progress, Tool


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


async def ran(tool: Tool, context: ShellContext, command: str, **more: object) -> Output:
    arguments = tool.parse(json.dumps({"command": command, **more}))
    with anyio.fail_after(40):
        working = tool.run(arguments, context)
        assert not hasattr(working, "__aiter__")
        output = await working
    assert isinstance(output, Output)
    return output


def in_git(folder: Path, *given: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *given], cwd=folder, check=True, capture_output=True, timeout=30)


def repository_in(folder: Path) -> Path:
    """A repository with one commit and one change."""
    (folder / "a.txt").write_text("one\n")
    in_git(folder, "init", "-q")
    in_git(folder, "add", "a.txt")
    in_git(folder, "commit", "-qm", "one")
    (folder / "a.txt").write_text("two\n")
    return folder
