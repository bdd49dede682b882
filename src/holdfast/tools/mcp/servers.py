"""All servers of tools: kept connected side by side, each on its own.

The one who runs this owns the tasks: `run` goes on until it is cancelled, and whatever was started
has ended when it returns.
"""

import logging
import random
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from holdfast.tools.base import Tool
from holdfast.tools.mcp.asking import Ask, Sample
from holdfast.tools.mcp.config import Server
from holdfast.tools.mcp.link import Link
from holdfast.tools.mcp.names import prefixes
from holdfast.tools.mcp.status import Patience, ServerStatus
from holdfast.tools.mcp.world import World

LOGGERS = ("mcp", "client")
"""The SDK's. What they say of servers, we say in our own words; without a handler of the
program's own it would go to the terminal."""


class Servers:
    """`tell` hears how it stands with each server, `changed` which tools it offers now (none when
    it is gone; the `put` of a toolbox will do), and `ask` is for questions of a server that belong
    to no call."""

    def __init__(
        self,
        configs: Iterable[Server],
        *,
        env: Mapping[str, str],
        workspace: Path,
        tell: Callable[[ServerStatus], None],
        ask: Ask,
        changed: Callable[[str, tuple[Tool, ...]], object],
        sample: Sample | None = None,
        patience: Patience | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        servers = tuple(configs)
        world = World(
            env=env,
            workspace=workspace,
            tell=tell,
            ask=ask,
            changed=changed,
            sample=sample,
            patience=patience or Patience(),
            jitter=jitter,
            version=version("holdfast"),
        )
        named = prefixes(server.name for server in servers)
        self.links = {one.name: Link(one, named[one.name], world) for one in servers}

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep all servers connected until cancelled. Counts as started at once: `ready` waits."""
        task_status.started()
        if any(not link.server.disabled for link in self.links.values()):
            await anyio.to_thread.run_sync(load_sdk)  # a second, in which the loop goes on
        async with anyio.create_task_group() as group:
            for link in self.links.values():
                group.start_soon(link.keep)
            await anyio.sleep_forever()

    async def ready(self, within: float) -> bool:
        """Whether every server has connected or failed; waits for it, so many seconds at most."""
        with anyio.move_on_after(within) as time:
            for link in self.links.values():
                await link.tried.wait()
        return not time.cancelled_caught

    def restart(self, name: str) -> None:
        """Start a server, or start it again, now; also one that was given up."""
        if name not in self.links:
            known = ", ".join(self.links) or "none"
            raise ValueError(f"there is no MCP server '{name}'; configured are: {known}")
        self.links[name].restart()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Those that are offered now, in the order of the servers."""
        return tuple(tool for link in self.links.values() for tool in link.tools)


def load_sdk() -> None:
    import mcp  # noqa: F401

    for name in LOGGERS:
        logging.getLogger(name).addHandler(logging.NullHandler())
