"""The engine: what sessions share while an application is up, and the owner of every task.

It keeps the servers of tools connected, opens and closes sessions, and starts runs in the
background. Leaving it ends all of that; what was under way is in the journal, and can go on.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, Protocol, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus

from holdfast.core.events import ToolsChanged
from holdfast.core.tools import ToolSpec
from holdfast.journal.base import JournalError
from holdfast.runtime.desk import Desk
from holdfast.runtime.driver import Driver, Means
from holdfast.runtime.tasks import Tasks

T = TypeVar("T")


Offer: TypeAlias = Callable[
    [tuple[ToolSpec, ...], str], tuple[tuple[ToolSpec, ...], tuple[str, ...]]
]
"""Given all tools and the task: those of a run, and which of them are left out at first."""


class Servers(Protocol):
    """Servers of tools, which come and go."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep them connected until cancelled."""

    async def ready(self, within: float) -> bool:
        """Until each has connected or failed, or the time is over; then False."""


@dataclass(slots=True)
class Slot:
    """A session that somebody uses here, or is about to."""

    driver: Driver | None = None
    users: int = 0
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while it is being opened or closed."""


class Engine(Generic[T]):
    """`async with` one. `T` is what its background tasks come to."""

    tasks: Tasks[T]

    def __init__(
        self,
        means: Means,
        *,
        desk: Callable[[], Desk] = Desk,
        servers: Servers | None = None,
        offer: Offer = lambda specs, task: (specs, ()),
    ) -> None:
        self.means = means
        self._desk = desk
        self._servers = servers
        self._offer = offer
        self._open: dict[str, Slot] = {}
        self._group: TaskGroup | None = None
        self._unwatch: Callable[[], None] = lambda: None

    async def __aenter__(self) -> "Engine[T]":
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self.tasks = Tasks(self._group)
        self.means.spawn = self._group.start_soon
        self._unwatch = self.means.gateway.toolbox.watch(self._tools_changed)
        if self._servers is not None:
            await self._group.start(self._keep_servers, self._servers)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._group is not None
        self._unwatch()
        self._group.cancel_scope.cancel()
        # Not with the error: the group would wrap it, and nobody could catch it by its name.
        await self._group.__aexit__(None, None, None)

    @staticmethod
    async def _keep_servers(servers: Servers, *, task_status: TaskStatus[None]) -> None:
        await servers.run(task_status=task_status)

    async def tools_ready(self, within: float) -> None:
        if self._servers is not None:
            await self._servers.ready(within)

    @asynccontextmanager
    async def session(
        self, name: str = "", *, new: bool = False, title: str = "", parent: str = ""
    ) -> AsyncIterator[Driver]:
        """The session of this name, or a new one. It is open here until the last who uses it
        leaves; until then no other process can write to it."""
        driver = await self._enter(name, new=new or not name, title=title, parent=parent)
        try:
            yield driver
        except BaseException:
            # What happened counts more than that the session cannot even be closed.
            with anyio.CancelScope(shield=True), suppress(JournalError):
                await self._leave(driver)
            raise
        with anyio.CancelScope(shield=True):
            await self._leave(driver)

    async def _enter(self, name: str, *, new: bool, title: str, parent: str) -> Driver:
        if not name:
            driver = await self._opened(name, new=new, title=title, parent=parent)
            self._open[driver.id] = Slot(driver, users=1)
            return driver
        slot = self._open.setdefault(name, Slot())
        slot.users += 1
        try:
            async with slot.lock:
                if slot.driver is None:
                    slot.driver = await self._opened(name, new=new, title=title, parent=parent)
                return slot.driver
        except BaseException:
            slot.users -= 1
            self._forget(name, slot)
            raise

    async def _opened(self, name: str, *, new: bool, title: str, parent: str) -> Driver:
        means = self.means
        if not new:
            return Driver(await means.journal.open(name), means, self._desk())
        folder, model = str(means.workspace), means.model.name
        book = await means.journal.create(
            session=name, folder=folder, model=model, title=title, parent=parent
        )
        return Driver(book, means, self._desk())

    async def _leave(self, driver: Driver) -> None:
        slot = self._open[driver.id]
        slot.users -= 1
        try:
            async with slot.lock:
                if slot.users == 0 and slot.driver is not None:
                    slot.driver = None
                    await driver.close()
        finally:
            self._forget(driver.id, slot)

    def _forget(self, name: str, slot: Slot) -> None:
        if slot.users == 0 and self._open.get(name) is slot:
            del self._open[name]

    def _tools_changed(self) -> None:
        specs = self.means.gateway.toolbox.specs
        for slot in self._open.values():
            driver = slot.driver
            if driver is not None and driver.is_working:
                tools, shelved = self._offer(specs, driver.task)
                with suppress(JournalError):  # its run will say so; the others go on
                    driver.happen(ToolsChanged(tools, driver.now(), shelved))
