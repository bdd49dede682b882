"""One server, kept connected: started, listed, called, and started again when it has failed.

It does not know of other servers. How bytes travel is `wires`, what a server may ask of us is
`asking`, and what its tools look like is `listing`.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import anyio

from holdfast.core.jsontext import dumped
from holdfast.tools.base import Context, Output, Progress, Tool, ToolError
from holdfast.tools.mcp import failures, listing
from holdfast.tools.mcp.asking import Desk, calling
from holdfast.tools.mcp.config import Server
from holdfast.tools.mcp.listing import Wanted
from holdfast.tools.mcp.results import output
from holdfast.tools.mcp.status import SETTLED, ServerStatus, State
from holdfast.tools.mcp.wires import CannotStart, Signs, connected
from holdfast.tools.mcp.world import World
from holdfast.tools.threads import in_thread

if TYPE_CHECKING:
    from mcp import Client, MCPError, types
    from mcp.client.session import IncomingMessage

Found: TypeAlias = tuple[tuple[Tool, ...], list[str]]
"""Tools that can be offered, and what people should know of the others."""
GOODBYE = 10.0
"""Seconds a server has to let go of us."""
PAGES = 100
"""Pages of a list of tools, at most: a server may never come to the end."""


class Link:
    def __init__(self, server: Server, prefix: str, world: World) -> None:
        self.server = server
        self.prefix = prefix
        self.world = world
        self.desk = Desk(server.name, world.workspace, world.ask, world.sample)
        self.state = State.OFF if server.disabled else State.STARTING
        self.moved = anyio.Event()
        """Set, and replaced, whenever the state changes."""
        self.tried = anyio.Event()
        """It has connected or failed once."""
        self.known: list[types.Tool] = []
        """The tools that it listed last."""
        self.tools: tuple[Tool, ...] = ()
        self.trouble = ""
        """Why it is not connected."""
        self.client: Client | None = None
        self.signs = Signs()
        self.stale = anyio.Event()
        """The list of tools is no longer what the server has."""
        self.wished = anyio.Event()
        """Someone wants it started, now."""
        self.told = False
        """It ends because it shall start again."""
        self.failures = 0
        self.plainly = False
        """Begin with the handshake that every server knows. Otherwise the new one is tried first,
        and some old servers fall over it."""

    # --- keeping it up ----------------------------------------------------------------------

    async def keep(self) -> None:
        """Keep it connected until cancelled."""
        if self.server.disabled:
            self.tried.set()
            return
        try:
            while True:
                await self.live()
                await self.rest()
        finally:
            self.client, self.tools = None, ()
            self.move(State.OFF)

    async def live(self) -> None:
        """From one start to its end, whatever ends it."""
        self.signs, self.stale, self.wished = Signs(), anyio.Event(), anyio.Event()
        self.told = False
        self.move(State.STARTING)
        since: float | None = None
        wrong: Exception | None = None
        try:
            with anyio.CancelScope() as time:
                time.deadline = anyio.current_time() + self.server.start_timeout
                async with self.session() as client:
                    listed = await self.listed(client)
                    found = await self.read(listed)
                    time.deadline = math.inf
                    since = anyio.current_time()
                    self.up(client, listed, found)
                    await self.serve(client)
                    time.deadline = anyio.current_time() + GOODBYE
            if time.cancelled_caught and since is None:
                wrong = TimeoutError()
        except Exception as raised:  # what a server can make the SDK raise has no end
            wrong = raised
        self.down(wrong, was_up=None if since is None else anyio.current_time() - since)

    def session(self) -> "Client":
        from mcp import Client
        from mcp.types import Implementation

        return Client(
            connected(self.server, self.world.env, self.world.workspace, self.signs),
            mode="legacy" if self.plainly else "auto",
            cache=None,
            log_level="info",
            client_info=Implementation(name="holdfast", version=self.world.version),
            elicitation_callback=self.desk.elicit,
            list_roots_callback=self.desk.roots,
            sampling_callback=self.desk.message if self.world.sample else None,
            logging_callback=self.log,
            message_handler=self.hear,
        )

    async def serve(self, client: "Client") -> None:
        """Until nothing more comes from the server."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.follow, client)
            group.start_soon(self.listen, client)
            await self.signs.ended.wait()
            group.cancel_scope.cancel()
        self.lost()

    async def rest(self) -> None:
        """The pause after a failure, which a wish ends."""
        if self.told:
            return
        if self.state is State.GIVEN_UP:
            await self.wished.wait()
            self.failures = 0
            return
        pause = self.world.patience.pause(self.failures, self.world.jitter())
        self.tell(self.state, self.trouble, stderr=self.signs.stderr, pause=pause)
        with anyio.move_on_after(pause):
            await self.wished.wait()

    def up(self, client: "Client", listed: "list[types.Tool]", found: Found) -> None:
        # Whether a result is as promised is ours to say, and no reason to lose it.
        client.session.validate_tool_result = as_it_is  # type: ignore[method-assign]
        self.client = client
        self.trouble = ""
        self.state = State.CONNECTED
        self.move(State.CONNECTED, self.offered(listed, found))

    def lost(self) -> None:
        """Its tools are gone from this moment; ending a process may take seconds more."""
        if self.client is not None:
            self.client = None
            self.offer(())
            self.move(State.WAITING)

    def down(self, wrong: Exception | None, was_up: float | None) -> None:
        """It has ended. `was_up` is for how many seconds it was connected; None: it never was."""
        self.lost()
        if self.told:
            self.failures = 0
            return
        if was_up is None and self.signs.there:
            self.plainly = not self.plainly
        steady = was_up is not None and was_up >= self.world.patience.steady
        self.failures = 1 if steady else self.failures + 1
        trouble = failures.sentence(wrong, self.signs, self.server, was_up=was_up is not None)
        self.trouble = self.server.veil(trouble)
        if isinstance(wrong, CannotStart):  # another try would be no better
            self.move(State.GIVEN_UP, self.trouble)
        elif self.failures >= self.world.patience.failures:
            self.move(State.GIVEN_UP, f"{self.trouble} It is given up.", stderr=self.signs.stderr)
        else:
            self.move(State.WAITING)

    def move(self, state: State, text: str = "", *, stderr: str = "") -> None:
        self.state = state
        if state is not State.WAITING:  # which is told with its pause
            self.tell(state, text, stderr=stderr)
        moved, self.moved = self.moved, anyio.Event()
        moved.set()
        if state in SETTLED:
            self.tried.set()

    def tell(
        self, state: State, text: str = "", *, log: str = "", stderr: str = "", pause: float = 0.0
    ) -> None:
        self.world.tell(
            ServerStatus(
                server=self.server.name,
                state=state,
                text=self.server.veil(text),
                log=self.server.veil(log),
                stderr=self.server.veil(stderr),
                tools=len(self.tools),
                failures=self.failures,
                pause=pause,
            )
        )

    def offer(self, tools: tuple[Tool, ...]) -> None:
        self.tools = tools
        self.world.changed(self.server.name, tools)

    async def started(self) -> None:
        """Have it started if it is down, and wait until it has connected or failed."""
        while self.state in (State.WAITING, State.GIVEN_UP):
            self.wished.set()
            await self.moved.wait()
        while self.state is State.STARTING:
            await self.moved.wait()

    def restart(self) -> None:
        """Start it, or start it again, now."""
        self.wished.set()
        if self.client is not None:
            self.told = True
            self.lost()
            self.signs.ended.set()

    # --- its tools --------------------------------------------------------------------------

    async def listed(self, client: "Client") -> "list[types.Tool]":
        """What the server has."""
        from mcp import MCPError
        from mcp.types import METHOD_NOT_FOUND

        found: list[types.Tool] = []
        cursor: str | None = None
        try:
            for _ in range(PAGES):
                page = await client.list_tools(cursor=cursor)
                found += page.tools
                if not page.next_cursor or page.next_cursor == cursor:
                    break
                cursor = page.next_cursor
        except MCPError as wrong:
            if wrong.code != METHOD_NOT_FOUND:
                raise
        return found

    async def read(self, listed: "list[types.Tool]") -> Found:
        """What can be offered of it. In a thread: to check large schemas takes seconds."""
        return await in_thread(listing.tools, self.server, self.prefix, listed, self.call)

    def offered(self, listed: "list[types.Tool]", found: Found) -> str:
        """Offer these, and say how many they are."""
        self.known = listed
        tools, notes = found
        self.offer(tools)
        for note in notes:
            self.tell(self.state, note)
        return f"{len(tools)} tools"

    async def follow(self, client: "Client") -> None:
        """Read the list of tools again whenever it may have changed."""
        from mcp import MCPError

        while True:
            await self.stale.wait()
            self.stale = anyio.Event()
            try:
                with anyio.fail_after(self.server.start_timeout):
                    listed = await self.listed(client)
                    found = await self.read(listed) if listed != self.known else None
            except (MCPError, TimeoutError, ValueError) as wrong:
                self.tell(self.state, f"Its tools changed and could not be read: {wrong}")
                continue
            if found is not None:
                self.tell(self.state, f"Its tools changed: {self.offered(listed, found)}")

    async def listen(self, client: "Client") -> None:
        """Servers of the newer protocol say that their tools changed only to those who listen."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
        from mcp.types import CONNECTION_CLOSED

        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    self.stale.set()  # what changed before was not heard
                    async for _ in changes:
                        self.stale.set()
            except ListenNotSupportedError:
                return  # then it says so without being asked
            except SubscriptionLost:
                pass
            except MCPError as wrong:
                if wrong.code != CONNECTION_CLOSED:
                    return  # it will not say
            await anyio.sleep(self.world.patience.first_pause)

    async def hear(self, message: "IncomingMessage") -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self.stale.set()
        elif isinstance(message, Exception) and not self.signs.babbled:
            self.signs.babbled = True  # told once: some write every line of their log there
            self.tell(self.state, "It sends what is no message of MCP; that is passed over.")

    async def log(self, params: "types.LoggingMessageNotificationParams") -> None:
        text = params.data if isinstance(params.data, str) else dumped(params.data)
        self.tell(self.state, log=f"{params.level}: {text}")

    # --- calls ------------------------------------------------------------------------------

    async def call(self, wanted: Wanted, context: Context) -> Output:
        """Call a tool; `ToolError` says what is known of a call that failed."""
        from mcp import MCPError

        client = await self.reached(wanted)
        token = calling.set(context)
        self.desk.running.append(context)
        try:
            try:
                return await self.called(client, wanted, context)
            except MCPError as wrong:
                if not await self.mended(wrong, client):
                    raise
                return await self.called(await self.reached(wanted), wanted, context)
        except MCPError as wrong:
            raise ToolError(
                self.server.veil(failures.of_call(wrong, self.server, wanted.tool))
            ) from wrong
        except ValueError as wrong:  # pydantic's is one
            raise ToolError(failures.unreadable(self.server, wanted.tool)) from wrong
        finally:
            self.desk.running.remove(context)
            calling.reset(token)

    async def called(self, client: "Client", wanted: Wanted, context: Context) -> Output:
        async def tell(progress: float, total: float | None, message: str | None) -> None:
            context.tell(Progress(self.server.veil_result(message or ""), progress, total))

        result = await client.call_tool(wanted.tool, dict(wanted.arguments), progress_callback=tell)
        if wanted.promised is None:
            found = output(result, None)
        else:
            found = await in_thread(output, result, wanted.promised)  # as with `read`
        return replace(found, text=self.server.veil_result(found.text))

    async def reached(self, wanted: Wanted) -> "Client":
        """The connection; a server that is down is started for it."""
        if self.client is None and self.state is not State.OFF:
            with anyio.move_on_after(self.world.patience.call):
                await self.started()
        if self.client is None:
            raise ToolError(failures.not_there(self.server, wanted.tool, self.trouble))
        return self.client

    async def mended(self, wrong: "MCPError", client: "Client") -> bool:
        """Whether what kept the server from taking the call at all has been put right."""
        if failures.forgot_us(wrong):
            if self.client is client:  # another call may have seen to it already
                self.restart()
            return True
        forms = failures.places_to_go(wrong)
        for form in forms:
            if not (await self.desk.person(form)).accepted:
                return False
        return bool(forms)


async def as_it_is(name: str, result: "types.CallToolResult") -> None:
    """Instead of the SDK's check, which throws a result away."""
