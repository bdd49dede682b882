"""From what the user of an agent gave to what an engine needs: models, journal, tools, servers."""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeAlias, cast

from typing_extensions import TypeVar

from holdfast.agent.result import Result
from holdfast.core.events import FromTheWorld, Pinned, RunStopped
from holdfast.core.limits import Limits, Settings
from holdfast.core.tools import ToolSpec
from holdfast.journal.base import Journal
from holdfast.journal.redact import Redactor
from holdfast.models.base import Model
from holdfast.models.fallback import Chain
from holdfast.runtime.answer import NotTheShape, Shape, Shaped
from holdfast.runtime.desk import NOT_FILLED, Approve, Desk
from holdfast.runtime.driver import Driver, Means
from holdfast.runtime.engine import Engine
from holdfast.runtime.tasks import Task
from holdfast.settings import (
    Loaded,
    Values,
    catalog_rules,
    places,
    prompt,
    retries,
    run_settings,
    waits,
)
from holdfast.tools.base import Filled, Form, Tool
from holdfast.tools.builtin import FIND_TOOLS, READ_RESULT, find_tools_tool, read_result_tool
from holdfast.tools.choice import Choice, Way, chosen, search_tools
from holdfast.tools.gateway import Gateway, Permissions
from holdfast.tools.permissions import Mode, Rule, Rules
from holdfast.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from holdfast.tools.mcp import Servers, ServerStatus

T = TypeVar("T", default=None)

Who: TypeAlias = str | Model | Sequence[str | Model]
"""A model by its name, or itself; several are asked in this order when one fails."""
Mcp: TypeAlias = Mapping[str, object] | Path | None
"""What stands in a file of `mcpServers`, or where the file is."""

SERVERS_WITHIN = 10.0
"""Seconds that a first run waits for servers of tools that are still starting."""
JOURNAL = "journal.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(Generic[T]):
    """What the user of an agent gave, read."""

    model: Who
    loaded: Loaded
    tools: tuple[Tool, ...]
    mcp: Mcp
    journal: Journal | None
    approve: Approve | None
    attended: bool
    shape: Shape[T] | None
    workspace: Path


@dataclass(slots=True, kw_only=True)
class Up(Generic[T]):
    """An agent that is up: its engine, and how its runs begin and end."""

    wanted: Wanted[T]
    engine: Engine[Result[T]]
    window: int
    warnings: tuple[str, ...]
    servers: "Mapping[str, ServerStatus]"
    """How it stands with each server of tools."""
    last: Settings | None = None
    """Those of the run before, if there was one."""
    has_waited: bool = False
    """For servers of tools, which have to start."""

    async def run(
        self, driver: Driver, text: str, cut: Callable[[Limits], Limits] | None = None
    ) -> Result[T]:
        stopped = await driver.run(text, await self.settings(text, cut))
        return self.result(driver, stopped)

    async def resume(self, driver: Driver) -> Result[T] | None:
        stopped = await driver.resume(await self.settings(""))
        return None if stopped is None else self.result(driver, stopped)

    async def settings(self, task: str, cut: Callable[[Limits], Limits] | None = None) -> Settings:
        """The settings of a run that begins now, with the tools there are now."""
        if not self.has_waited:  # later on, tools join the runs that are under way
            await self.engine.tools_ready(SERVERS_WITHIN)
            self.has_waited = True
        loaded, means = self.wanted.loaded, self.engine.means
        specs = means.gateway.toolbox.specs
        tools, shelved = offered(loaded.values, specs, task, self.window)
        settings = self.last
        if settings is None or (settings.tools, settings.shelved) != (tools, shelved):
            made = run_settings(
                loaded,
                model=means.model.name,
                window=self.window,
                system=system_prompt(loaded.values, self.wanted.shape),
                tools=tools,
            )
            settings = self.last = replace(made, shelved=shelved)
        return replace(settings, limits=cut(settings.limits)) if cut else settings

    def result(self, driver: Driver, stopped: RunStopped) -> Result[T]:
        run = driver.state.run
        assert run is not None
        output: T | None = None
        if self.wanted.shape is not None:
            try:
                output = self.wanted.shape.read(stopped.text)
            except NotTheShape:
                output = None  # the stop reason says why there is none
        return Result(
            text=stopped.text,
            reason=stopped.reason,
            ledger=run.ledger,
            usage=run.spent,
            session_id=driver.id,
            output=output,
            warnings=(*self.warnings, *ailing(self.servers.values())),
        )

    def session(self, session: str, name: str) -> AbstractAsyncContextManager[Driver]:
        """An earlier one by its id, one of this name, or a new one."""
        if session and name:
            raise ValueError("give the id of a session or a name, not both")
        return self.engine.session(name or session, new=bool(name))

    async def start(
        self, text: str, session: str, name: str, within: float | None
    ) -> Task[Result[T]]:
        stack = AsyncExitStack()
        driver = await stack.enter_async_context(self.session(session, name))

        async def work() -> Result[T]:
            async with stack:
                return await self.run(driver, text)

        return self.engine.tasks.start(text, driver, work, within=within)


@asynccontextmanager
async def up(wanted: Wanted[T]) -> AsyncIterator[Up[T]]:
    """Bring up what runs need; all of it is gone when the block ends."""
    async with AsyncExitStack() as stack:
        values = wanted.loaded.values
        model, window, warnings = await opened_model(wanted.model, values)
        stack.push_async_callback(model.aclose)
        journal = wanted.journal
        if journal is None:
            journal = own_journal(values)
            stack.push_async_callback(journal.aclose)
        toolbox = with_helpers(wanted.tools)
        given = values.permissions
        rules = Rules.parse(allow=given.allow, ask=given.ask, deny=given.deny)
        gateway = Gateway(
            toolbox,
            wanted.workspace,
            permissions=Permissions(Mode(values.permission_mode), rules),
            timeout=values.tools.timeout,
        )
        means = Means(
            journal=journal,
            model=Shaped(model, wanted.shape) if wanted.shape else model,
            gateway=gateway,
            workspace=wanted.workspace,
            clean=(clean := cleaner(journal, values)),
            clean_text=lambda text: cleaned(text, clean),
        )
        statuses: dict[str, ServerStatus] = {}

        def tell(status: "ServerStatus") -> None:
            statuses[status.server] = status

        servers, doubts = servers_of(wanted, toolbox, tell)
        engine = Engine[Result[T]](
            means,
            desk=lambda: Desk(wanted.approve, attended=wanted.attended),
            servers=servers,
            offer=lambda specs, task: offered(values, specs, task, window),
        )
        await stack.enter_async_context(engine)
        strangers = nameless(rules, toolbox) if servers is None else ()
        warnings = (*wanted.loaded.warnings, *warnings, *doubts, *strangers)
        yield Up(wanted=wanted, engine=engine, window=window, warnings=warnings, servers=statuses)


def nameless(rules: Rules, toolbox: Toolbox) -> Iterator[str]:
    """A sentence for each rule that names no tool there is: it would never apply."""
    names = [tool.name for tool in toolbox]
    for rule in (*rules.allow, *rules.ask, *rules.deny):
        try:
            Rule.parse(str(rule), names)
        except ValueError as wrong:
            yield f"The rule {rule} never applies: {wrong}"


def ailing(servers: "Iterable[ServerStatus]") -> Iterator[str]:
    """A sentence for each server of tools that cannot be used now."""
    for status in servers:
        if status.state.value not in ("connected", "off"):
            yield f"The MCP server {status.server} is {status.state.value}. {status.text}".strip()


# --- the parts ------------------------------------------------------------------------------------


async def opened_model(who: Who, values: Values) -> tuple[Model, int, tuple[str, ...]]:
    """One that asks them in their order, the window of the first, and what people must be told."""
    from holdfast.models.catalog import ASSUMED_WINDOW, rules
    from holdfast.models.names import opened

    several = [who] if isinstance(who, str) or not isinstance(who, Sequence) else list(who)
    models: list[Model] = []
    windows: list[int] = []
    warnings: list[str] = []
    for each in several:
        if isinstance(each, str):
            got = await opened(
                each,
                os.environ,
                (catalog_rules(values), *rules()),
                window=values.budget.window,
                waits=waits(values),
            )
            models.append(got.model)
            windows.append(got.known.window)
            warnings += got.warnings
            continue
        models.append(each)
        known = values.budget.window or getattr(each, "window", None)
        if known is None:
            warnings.append(
                f"Nobody said how large the window of {each.name} is; {ASSUMED_WINDOW} tokens are "
                "assumed. Set budget.window."
            )
        windows.append(known or ASSUMED_WINDOW)
    return Chain(models, retries(values)), windows[0], tuple(warnings)


def cleaner(journal: Journal, values: Values) -> Callable[[FromTheWorld], FromTheWorld]:
    """Takes secrets out of whatever happens, before anyone keeps it or sends it on."""
    named = [os.environ.get(name, "") for name in values.secrets.names]
    if not any(named):
        return lambda event: cast(FromTheWorld, journal.redacted(event))
    redactor = Redactor(values=filter(None, named))
    return lambda event: cast(FromTheWorld, journal.redacted(redactor.event(event)))


def cleaned(text: str, clean: Callable[[FromTheWorld], FromTheWorld]) -> str:
    event = clean(Pinned("", text, 0.0))
    return event.text if isinstance(event, Pinned) else ""


def own_journal(values: Values) -> Journal:
    from holdfast.journal.sqlite import SqliteJournal

    path = Path(values.journal.path or places(os.environ, Path.home()).data / JOURNAL)
    return SqliteJournal(path.expanduser(), synchronous=values.journal.synchronous)


def servers_of(
    wanted: Wanted[T], toolbox: Toolbox, tell: "Callable[[ServerStatus], None]"
) -> "tuple[Servers | None, tuple[str, ...]]":
    if not wanted.mcp:
        return None, ()
    from holdfast.tools.mcp import Servers
    from holdfast.tools.mcp.config import ConfigError, load, read

    if isinstance(wanted.mcp, Path):
        try:
            text = wanted.mcp.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as wrong:
            raise ConfigError([f"{wanted.mcp} cannot be read: {wrong}."]) from wrong
        loaded = load(text, os.environ)
    else:
        loaded = read(wanted.mcp, os.environ)

    async def nobody(server: str, form: Form) -> Filled:
        return NOT_FILLED

    def changed(server: str, tools: tuple[Tool, ...]) -> None:
        toolbox.put(server, tools)

    servers = Servers(
        loaded.servers,
        env=os.environ,
        workspace=wanted.workspace,
        tell=tell,
        ask=nobody,
        changed=changed,
    )
    return servers, loaded.warnings


def system_prompt(values: Values, shape: "Shape[T] | None") -> str:
    parts = (prompt(values), shape.instruction if shape else "")
    return "\n\n".join(part for part in parts if part)


FEW = 12
"""Tools among which none need be looked for."""


def offered(
    values: Values, tools: tuple[ToolSpec, ...], task: str, window: int
) -> tuple[tuple[ToolSpec, ...], tuple[str, ...]]:
    """The tools of a run, and which of them are left out of the definitions at first."""
    wanted = values.tools
    way = {"flat": Way.FLAT, "allow": Way.LISTED, "retrieval": Way.FITTING}.get(wanted.choice)
    most = None if way is Way.FLAT else window // 3
    plan = Choice(way=way or Way.FLAT, names=wanted.allow, most=wanted.top)
    picked = chosen(tools, plan=plan, task=task, most_tokens=most)
    ours = {READ_RESULT.name, FIND_TOOLS.name}
    others = [tool for tool in tools if tool.name not in ours]
    if not others:
        return (), ()
    if not picked.shelved and len(others) <= FEW:
        tools = tuple(tool for tool in tools if tool.name != FIND_TOOLS.name)
    return tools, picked.shelved_names


def with_helpers(given: tuple[Tool, ...]) -> Toolbox:
    """The tools that were given, and those with which a model helps itself to what was left out:
    the rest of a long result, a tool that was not offered."""
    names = {each.name for each in given}
    toolbox: Toolbox

    def search(query: str) -> Sequence[ToolSpec]:
        return search_tools(query, toolbox.specs)

    helpers = (read_result_tool(), find_tools_tool(search))
    toolbox = Toolbox((*given, *(each for each in helpers if each.name not in names)))
    return toolbox
