"""Agent: the way in for those who write programs. It wires the parts together, and decides nothing.

    agent = Agent("ollama/qwen3:8b", tools=[read_receipt])
    run = agent.run_sync("Put the receipts on my desktop into a table")

Inside `async with agent` it stays connected, keeps sessions open and can work in the background;
outside, each run brings up what it needs and takes it down again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Generic

import anyio
from typing_extensions import TypeVar

from holdfast.agent.delegation import delegate
from holdfast.agent.result import Result
from holdfast.agent.watching import Stream
from holdfast.agent.wiring import Mcp, Up, Wanted, Who, up
from holdfast.core.limits import Limits
from holdfast.journal.base import Journal
from holdfast.runtime.answer import Shape
from holdfast.runtime.desk import Approve
from holdfast.runtime.driver import Driver
from holdfast.runtime.engine import Engine
from holdfast.runtime.restoring import undo
from holdfast.runtime.tasks import Task, Tasks
from holdfast.settings import Loaded, Values, of_a_profile
from holdfast.tools.base import Tool
from holdfast.tools.function import FunctionTool, tool
from holdfast.tools.permissions import Mode
from holdfast.tools.toolbox import Toolbox
from holdfast.tools.undo import Restored

if TYPE_CHECKING:
    from holdfast.tools.mcp import ServerStatus

T = TypeVar("T", default=None)


class Agent(Generic[T]):
    def __init__(
        self,
        model: Who | None = None,
        *,
        tools: Iterable[Tool | Callable[..., object]] = (),
        mcp: Mcp = None,
        profile: str = "default",
        instructions: str | None = None,
        limits: Limits | Mapping[str, float] | None = None,
        permissions: Mapping[str, str | Sequence[str]] | None = None,
        journal: Journal | None = None,
        approve: Approve | None = None,
        output: type[T] | None = None,
        workspace: Path | str = ".",
        settings: Loaded | None = None,
        attended: bool = False,
    ) -> None:
        """`model` is a name, a model or a list of them, asked in that order; without one it is
        that of the settings. `tools` are functions and tools. `mcp` is what stands in a file of
        `mcpServers`, or its path. `limits` replace those of the profile, or, as a mapping, some
        of them. `permissions` are a `mode` and rules to `allow`, `ask` and `deny`. `journal` is where sessions are kept: without one, in the user's folder for data.
        `approve` is asked about calls that need a yes; without it they get a no, unless the
        application is `attended` and answers what the stream shows. `settings` are those that
        were loaded by `holdfast.settings.load`, in place of a profile."""
        if settings is None:
            settings = of_a_profile(profile)
        values = settings.values
        if instructions is not None:
            values = replace(values, instructions=instructions)
        if limits is not None:
            values = replace(values, limits=chosen_limits(values.limits, limits))
        if permissions is not None:
            values = permitting(values, permissions)
        if not (model or values.model):
            raise ValueError("which model? Name one, such as Agent('ollama/qwen3:8b').")
        own = tuple(map(as_tool, tools))
        Toolbox(own)  # two of one name are refused now, not in the first run
        self._wanted: Wanted[T] = Wanted(
            model=model or values.model,
            loaded=replace(settings, values=values),
            tools=own,
            mcp=mcp or dict(values.mcp_servers) or None,
            journal=journal,
            approve=approve,
            attended=attended,
            shape=Shape(output) if output is not None else None,
            workspace=Path(workspace).expanduser().resolve(),
        )
        self._up: Up[T] | None = None
        self._exit = AsyncExitStack()

    # --- one run --------------------------------------------------------------------------------

    async def run(self, text: str, *, session: str = "", name: str = "") -> Result[T]:
        """Work until there is an answer. `session` goes on with an earlier one, by its id;
        `name` too, and begins one of this name if there is none."""
        async with self._reach() as reached, reached.session(session, name) as driver:
            return await reached.run(driver, text)

    def run_sync(self, text: str, *, session: str = "", name: str = "") -> Result[T]:
        """`run` for programs that are not asynchronous."""
        return anyio.run(partial(self.run, text, session=session, name=name))

    async def resume(self, session: str) -> Result[T] | None:
        """Go on with a run that a crash or a stop of the program left open; None if there is
        none. Nothing else ever runs a session that was only opened."""
        async with self._reach() as reached, reached.engine.session(session) as driver:
            return await reached.resume(driver)

    async def cancel(self, session: str) -> bool:
        """Give up a run that a crash left open; False if there is none. One that is under way
        here is cancelled by its task or stream."""
        async with self._reach() as reached, reached.engine.session(session) as driver:
            was_open = driver.is_open
            driver.cancel()
            return was_open

    async def undo(
        self, session: str, *, runs: int = 1, force: bool = False
    ) -> tuple[Restored, ...]:
        """Take back what the last runs of a session did to files, and say what became of each.
        One that somebody else changed since is left alone, unless `force` is set."""
        async with self._reach() as reached, reached.engine.session(session) as driver:
            return await undo(driver, runs=runs, force=force)

    def stream(self, text: str, *, session: str = "", name: str = "") -> Stream[T]:
        """A run to watch while it happens: `async with` it, and iterate over its events."""
        return Stream(self._reach, text, session, name, stays=self._up is not None)

    # --- staying up -----------------------------------------------------------------------------

    async def __aenter__(self) -> "Agent[T]":
        if self._up is not None:
            raise RuntimeError("this agent is up already")
        async with AsyncExitStack() as stack:
            self._up = await stack.enter_async_context(up(self._wanted))
            self._exit = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._up = None
        return await self._exit.__aexit__(kind, error, trace)

    async def start(
        self, text: str, *, session: str = "", name: str = "", within: float | None = None
    ) -> Task[Result[T]]:
        """Begin a run in the background. `within`: seconds after which it is cancelled."""
        return await self._needed("start").start(text, session, name, within)

    def as_tool(self, name: str, description: str, *, share: float = 0.5) -> Tool:
        """This agent as a tool of another: each call is a session of its own, which may spend at
        most this share of what the caller has left, and is gone on with after a crash."""
        return delegate(self._reach, name, description, share)

    @property
    def tasks(self) -> Tasks[Result[T]]:
        return self._needed("tasks").engine.tasks

    @property
    def engine(self) -> Engine[Result[T]]:
        """For applications that keep sessions open: `async with agent.engine.session(id)`."""
        return self._needed("engine").engine

    async def run_in(self, driver: Driver, text: str) -> Result[T]:
        """`run` in a session that is kept open."""
        return await self._needed("run_in").run(driver, text)

    async def resume_in(self, driver: Driver) -> Result[T] | None:
        """`resume` in a session that is kept open."""
        return await self._needed("resume_in").resume(driver)

    @property
    def servers(self) -> "Mapping[str, ServerStatus]":
        """How it stands with each server of tools, while the agent is up."""
        return self._needed("servers").servers

    @property
    def journal(self) -> Journal:
        """Where the sessions of this agent are kept, while it is up."""
        return self._needed("journal").engine.means.journal

    # --- inside ---------------------------------------------------------------------------------

    def _reach(self) -> AbstractAsyncContextManager[Up[T]]:
        """What runs need: that of the agent which is up, or for this run alone."""
        return up(self._wanted) if self._up is None else nullcontext(self._up)

    def _needed(self, what: str) -> Up[T]:
        if self._up is None:
            raise RuntimeError(f"agent.{what} needs the agent to be up: `async with agent:`")
        return self._up


def as_tool(given: Tool | Callable[..., object]) -> Tool:
    """A function that was handed to an agent by its own program is trusted with what it does: it
    is asked about only if it says so itself, or a rule does."""
    made: Tool = given if isinstance(given, Tool) else tool(given)
    trusted = isinstance(made, FunctionTool) and made.approve is None
    return replace(made, approve=False) if trusted else made


def permitting(values: Values, given: Mapping[str, str | Sequence[str]]) -> Values:
    rules: dict[str, tuple[str, ...]] = {}
    for name, said in given.items():
        if name == "mode":
            values = replace(values, permission_mode=Mode.parse(str(said)).value)
        elif name in ("allow", "ask", "deny"):
            rules[name] = (said,) if isinstance(said, str) else tuple(said)
        else:
            raise ValueError(f"permissions have a mode, allow, ask and deny, and no '{name}'")
    return replace(values, permissions=replace(values.permissions, **rules))


def chosen_limits(those: Limits, given: Limits | Mapping[str, float]) -> Limits:
    if isinstance(given, Limits):
        return given
    known = [each.name for each in fields(Limits)]
    for name in given:
        if name not in known:
            raise ValueError(f"there is no limit named '{name}'; there are: {', '.join(known)}")
    return replace(those, **given)  # type: ignore[arg-type]  # Limits looks at each number
