"""The program that the official conformance suite drives: our client, and nothing of its own.

The suite starts a server for each scenario, appends its address to the command and watches what
we send. Every tool is called once, with plain arguments; a person who is asked accepts.

`make conformance` runs it, by way of `scenarios`.
"""

import os
import sys
from pathlib import Path

import anyio

from holdfast.core.jsontext import json_object
from holdfast.core.limits import Usage
from holdfast.tools.base import Context, Filled, Form, Left, Progress, Tool, ToolError
from holdfast.tools.mcp import Patience, Server, Servers, ServerStatus, State, Wire

PATIENT = 100
"""Seconds."""
VALUES: dict[object, object] = {
    "string": "text",
    "integer": 2,
    "number": 3,
    "boolean": True,
    "array": [],
    "object": {},
}


class Suite(Context):
    """A person who accepts whatever is asked, and leaves each field as it is."""

    session = call_id = key = "conformance"
    workspace = Path.cwd()

    @property
    def left(self) -> Left:
        raise NotImplementedError

    def tell(self, progress: Progress) -> None:
        print(progress)

    async def keep(self, path: Path) -> None:
        raise NotImplementedError

    async def result(self, call_id: str) -> str | None:
        raise NotImplementedError

    async def found(self, names: tuple[str, ...]) -> None:
        raise NotImplementedError

    async def ask(self, form: Form) -> Filled:
        print(form)
        return Filled(accepted=True)

    async def charge(self, usage: Usage) -> None:
        raise NotImplementedError


async def asked(server: str, form: Form) -> Filled:
    return Filled(accepted=True)


async def main(url: str) -> int:
    last = State.STARTING

    def tell(status: ServerStatus) -> None:
        nonlocal last
        last = status.state
        print(status)

    servers = Servers(
        [Server(name="suite", wire=Wire.HTTP, url=url)],
        env=os.environ,
        workspace=Path.cwd(),
        tell=tell,
        ask=asked,
        changed=lambda _, tools: print([tool.name for tool in tools]),
        patience=Patience(failures=2),
    )
    async with anyio.create_task_group() as group:
        await group.start(servers.run)
        await servers.ready(within=PATIENT)
        failed = last is not State.CONNECTED
        for tool in servers.tools:
            failed |= not await called(tool)
        group.cancel_scope.cancel()
    return int(failed)


async def called(tool: Tool) -> bool:
    fields = json_object(tool.spec.parameters).get("properties")
    arguments = {
        name: VALUES.get(field.get("type"), "text")
        for name, field in (fields if isinstance(fields, dict) else {}).items()
        if isinstance(field, dict)
    }
    try:
        with anyio.fail_after(PATIENT):
            print(await tool.run(arguments, Suite()))  # type: ignore[misc]
    except (ToolError, TimeoutError) as wrong:
        print(tool.name, repr(wrong))
        return False
    return True


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[-1]))
