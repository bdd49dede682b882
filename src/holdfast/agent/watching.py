"""A run to watch while it happens, and a session to keep open over several."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Generic, TypeAlias

import anyio
from typing_extensions import TypeVar

from holdfast.agent.result import Result
from holdfast.agent.wiring import Up
from holdfast.core.events import Event
from holdfast.journal.base import Stored
from holdfast.models.base import Piece
from holdfast.runtime.bus import Answered, Watcher
from holdfast.runtime.driver import Driver
from holdfast.runtime.tasks import Task
from holdfast.tools.base import Filled, Form, Progress
from holdfast.tools.door import Answer, Question

T = TypeVar("T", default=None)

Happening: TypeAlias = Event | Piece | Progress | Question | Form | Answered
"""What a stream shows: events, which are in the log, and what passes by between them."""


class Stream(Generic[T]):
    """`async with` it and iterate. Leaving it early cancels the run.

    While the agent is up it can also be iterated as it is.
    """

    def __init__(
        self,
        reach: Callable[[], AbstractAsyncContextManager[Up[T]]],
        text: str,
        session: str,
        name: str,
        *,
        stays: bool,
    ) -> None:
        self._reach = reach
        self._text = text
        self._session = session
        self._name = name
        self._stays = stays
        """Whether the agent is up anyway, so that iterating needs no block of its own."""
        self._stack = AsyncExitStack()
        self._watcher: Watcher | None = None
        self._task: Task[Result[T]] | None = None

    async def __aenter__(self) -> "Stream[T]":
        async with AsyncExitStack() as stack:
            await self._begin(await stack.enter_async_context(self._reach()))
            self._stack = stack.pop_all()
        return self

    async def _begin(self, up: Up[T]) -> None:
        task = self._task = await up.start(self._text, self._session, self._name, None)
        watcher = self._watcher = task.driver.bus.watch()
        task.when_ended(watcher.close)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if self._task is not None:
            self._task.cancel()
            with anyio.CancelScope(shield=True):
                await self._task.ended()
        return await self._stack.__aexit__(kind, error, trace)

    def __aiter__(self) -> AsyncIterator[Happening]:
        return self

    async def __anext__(self) -> Happening:
        if self._watcher is None:
            if not self._stays:
                raise RuntimeError(
                    "iterate inside `async with agent.stream(...) as events:`, or keep the agent "
                    "up with `async with agent:` around it; otherwise nothing could end the run"
                )
            async with self._reach() as up:
                await self._begin(up)
        assert self._watcher is not None
        shown = await anext(self._watcher)
        return shown.event if isinstance(shown, Stored) else shown.what

    def __del__(self) -> None:
        if self._task is not None:  # whoever iterated went away without a word
            self._task.cancel()

    def say(self, text: str) -> None:
        """Steer the run."""
        self.driver.say(text)

    def cancel(self) -> None:
        """Stop the run; the events that are left are still shown."""
        self._begun.cancel()

    @property
    def session_id(self) -> str:
        return self._begun.session

    @property
    def driver(self) -> Driver:
        return self._begun.driver

    def answer(self, call_id: str, answer: Answer | Filled) -> bool:
        """Answer a question or a form that the stream showed."""
        return self.driver.desk.answer(call_id, answer)

    async def result(self) -> Result[T]:
        """What came of it, when it has ended."""
        return await self._begun.wait()

    @property
    def _begun(self) -> Task[Result[T]]:
        if self._task is None:
            raise RuntimeError("the run has not begun: `async with` the stream first")
        return self._task
