"""Work that can be left behind: a task which its caller bounds, and does not have to wait for.

A task group waits for its tasks, also for one that shields itself from cancellation; a tool that
does so would hold up the run, and the user with it. So a tool runs in a task of the engine's, not
of the run's: `Spawn` starts it there. What runs here is `gateway`'s business.
"""

import math
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import anyio
import anyio.lowlevel

T = TypeVar("T")

Spawn: TypeAlias = Callable[[Callable[[], Coroutine[object, object, None]]], object]
"""Begins work in a task that outlives its caller. The work must not raise."""

QUICK = 0.2
"""Seconds that cancelled work may clean up before its caller goes on: people wait for them."""


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """How work ended: with a value, an error, or neither if it was stopped."""

    value: T | None = None
    error: BaseException | None = None
    stopped: bool = False


class Detached(Generic[T]):
    """One piece of work. `late` hears of its end if nobody waits for it any more."""

    def __init__(
        self,
        work: Callable[[], Awaitable[T]],
        late: Callable[[Ended[T]], Coroutine[object, object, None]],
        spawn: Spawn,
    ) -> None:
        self.ended: Ended[T] | None = None
        self._work, self._late, self._spawn = work, late, spawn
        self._scope, self._done, self._left = anyio.CancelScope(), anyio.Event(), False
        self._time, self._rests, self._remaining = anyio.CancelScope(), 0, 0.0

    @property
    def is_told_to_stop(self) -> bool:
        return self._scope.cancel_called

    async def wait(self, seconds: float, grace: float) -> Ended[T] | None:
        """How it ended. After `seconds` it is stopped; None if it goes on all the same for
        `grace`. Cancelled, this stops the work and hardly waits."""
        self._spawn(self._run)
        self._time.deadline = anyio.current_time() + seconds
        try:
            with self._time:
                await self._done.wait()
                return self.ended
            self._scope.cancel()
            with anyio.move_on_after(grace):
                await self._done.wait()
                return self.ended
        except anyio.get_cancelled_exc_class():
            if (ended := self.ended) and not ended.stopped:  # it came in the same moment
                self._spawn(lambda: self._late(ended))
            self._leave()
            with anyio.move_on_after(min(QUICK, grace), shield=True):
                await self._done.wait()
            raise
        self._leave()
        return None

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Time that does not count: meanwhile somebody else is waited for."""
        if not self._rests:
            self._remaining = self._time.deadline - anyio.current_time()
            self._time.deadline = math.inf
        self._rests += 1
        try:
            yield
        finally:
            self._rests -= 1
            if not self._rests:
                self._time.deadline = anyio.current_time() + self._remaining

    def _leave(self) -> None:
        self._left = True
        self._scope.cancel()

    async def _run(self) -> None:
        ended: Ended[T] = Ended(stopped=True)
        try:
            with self._scope:
                await anyio.lowlevel.checkpoint()  # what was stopped before it began never begins
                ended = await self._caught()
        finally:
            self.ended = ended
            self._done.set()
        if self._left and not ended.stopped:
            await self._late(ended)

    async def _caught(self) -> Ended[T]:
        try:
            return Ended(value=await self._work())
        except anyio.get_cancelled_exc_class() as error:
            if self._scope.cancel_called:
                raise
            return Ended(error=error)
        except BaseException as error:  # it is raised again where the caller waits
            return Ended(error=error)
