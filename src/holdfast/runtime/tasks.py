"""Runs in the background: numbered, each with a session of its own and a handle.

A task belongs to the engine it was started in, and is gone when that closes. What it did is in
its session, which is not.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from holdfast.runtime.driver import WITHIN, Driver

log = logging.getLogger("holdfast")
T = TypeVar("T")
KEPT = 100
"""Tasks that have ended and can still be asked for."""


class Status(Enum):
    RUNNING = "running"
    FINISHED = "finished"
    """It came to its end, whatever the stop reason."""
    CANCELLED = "cancelled"
    """It was ended before it had one."""
    FAILED = "failed"
    """Something raised that no run should raise."""


@dataclass(slots=True, eq=False)
class Task(Generic[T]):
    number: int
    text: str
    """What it was asked."""
    driver: Driver
    status: Status = Status.RUNNING
    result: T | None = None
    error: BaseException | None = None
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _done: anyio.Event = field(default_factory=anyio.Event)
    _calls: list[Callable[[], None]] = field(default_factory=list)
    _worker: int = 0
    """The task that works for it, as the event loop knows it."""

    @property
    def session(self) -> str:
        return self.driver.id

    def cancel(self) -> None:
        """Stop it. Its session keeps what it did, and can go on later."""
        if self.status is not Status.RUNNING:
            return
        if self.driver.worker == self._worker:  # else another run has its turn in the session
            self.driver.cancel()
        else:
            self._scope.cancel()

    def say(self, text: str) -> None:
        """Steer it."""
        self.driver.say(text)

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call it when the task has ended; at once if it has."""
        if self.status is Status.RUNNING:
            self._calls.append(call)
        else:
            call()

    async def wait(self, within: float | None = None) -> T:
        """Its result, when it has one. A `TimeoutError` after `within` seconds: the task goes on,
        only the waiting ends."""
        with anyio.fail_after(within):
            await self._done.wait()
        if self.error is not None:
            raise self.error
        if self.result is None:
            raise RuntimeError(f"task {self.number} was ended before it had a result")
        return self.result

    async def ended(self) -> None:
        """Until it has ended, however."""
        await self._done.wait()

    async def run(self, work: Callable[[], Awaitable[T]], within: float | None) -> None:
        self._worker = anyio.get_current_task().id
        WITHIN.set(frozenset())  # it works for nobody's run, also if a tool started it
        try:
            with self._scope:
                async with anyio.create_task_group() as group:
                    if within is not None:
                        group.start_soon(self._call_off, within)
                    self.result = await work()
                    group.cancel_scope.cancel()
            self.status = Status.FINISHED if self.result is not None else Status.CANCELLED
        except Exception as error:
            self.error = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            self.status = Status.FAILED
        finally:
            if self.status is Status.RUNNING:
                self.status = Status.CANCELLED
            self._done.set()
            for call in self._calls:
                quietly(call)

    async def _call_off(self, within: float) -> None:
        await anyio.sleep(within)
        self.cancel()


def quietly(call: Callable[[], None]) -> None:
    """What others want to be told must not end the work of everybody."""
    try:
        call()
    except Exception:
        log.exception("whoever was told that a task has ended failed")


class Tasks(Generic[T]):
    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._started = 0
        self._tasks: dict[int, Task[T]] = {}
        self._watchers: list[Callable[[Task[T]], None]] = []

    def start(
        self,
        text: str,
        driver: Driver,
        work: Callable[[], Awaitable[T]],
        *,
        within: float | None = None,
    ) -> Task[T]:
        """`within`: seconds after which it is cancelled."""
        self._started += 1
        task = self._tasks[self._started] = Task[T](self._started, text, driver)
        self._group.start_soon(self._run, task, work, within)
        return task

    async def _run(
        self, task: Task[T], work: Callable[[], Awaitable[T]], within: float | None
    ) -> None:
        try:
            await task.run(work, within)
        finally:
            for watcher in tuple(self._watchers):
                quietly(partial(watcher, task))
            self._forget_old()

    def _forget_old(self) -> None:
        ended = [each.number for each in self._tasks.values() if each.status is not Status.RUNNING]
        for number in ended[:-KEPT]:
            del self._tasks[number]

    def __getitem__(self, number: int) -> Task[T]:
        task = self._tasks.get(number)
        if task is None:
            known = ", ".join(map(str, self._tasks)) or "none yet"
            raise KeyError(f"there is no task {number}; there are: {known}")
        return task

    def list(self) -> tuple[Task[T], ...]:
        return tuple(self._tasks.values())

    def notify(self, watcher: Callable[[Task[T]], None]) -> Callable[[], None]:
        """Call it with each task that ends; what comes back undoes that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)
