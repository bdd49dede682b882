"""Blocking work, in threads that can be given up.

A function that blocks cannot be stopped from outside. When its call is cancelled, the run goes on
without it: the thread is abandoned, and whatever it still returns is late. The threads are daemons,
so none of them holds up the end of the process; those of `anyio.to_thread` would. What a late
result is worth is decided by whoever asked to be told of it.
"""

import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

P = ParamSpec("P")
T = TypeVar("T")

MOST_RUNNING = 64
"""Calls at once in one event loop; the next waits. A reply can hold as many."""
MOST_ABANDONED = 256
"""Threads that nobody waits for, in the whole process. They free their place among the running
ones, or a few hung calls would stop all tools; but a tool that always hangs must not fill memory
either. Each costs about 50 KB and its stack's addresses."""


class Abandoned(Exception):
    """The call was given up: raised in its thread, where it still wanted something of the run."""


class TooManyAbandoned(RuntimeError):
    pass


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """How a function in a thread ended: with a value, unless there is an error."""

    value: T | None = None
    error: Exception | None = None


Late: TypeAlias = Callable[[Outcome[object]], None]

when_late: ContextVar[Late | None] = ContextVar("when_late", default=None)
"""Told, in the event loop, how an abandoned call ended after all, if the loop still runs. Set it
around the work whose late results are wanted."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a thread wants done in the event loop, and where it waits for it."""

    do: Callable[[], Awaitable[object]]
    done: Future[object]


Told: TypeAlias = Wish | Outcome[object]
"""What a thread says to the event loop."""


class Call:
    """One function in one thread."""

    def __init__(
        self,
        token: anyio.lowlevel.EventLoopToken,
        send: MemoryObjectSendStream[Told],
    ) -> None:
        self.token, self.send = token, send
        self.late = when_late.get()
        self.abandoned = False
        self.has_ended = False

    def tell(self, what: Told) -> None:
        """Runs in the event loop."""
        self.has_ended = isinstance(what, Outcome)
        if not self.abandoned:
            self.send.send_nowait(what)
        else:
            self.tell_late(what)

    def tell_late(self, what: Told) -> None:
        if isinstance(what, Wish):
            what.done.set_exception(Abandoned(GIVEN_UP))
            return
        forget(self)
        if self.late is not None:
            self.late(what)


IDLE = 10.0
"""Seconds after which a thread without work ends."""
GIVEN_UP = "the call was given up; nobody waits for its result"
call_of_this_thread: ContextVar[Call] = ContextVar("call_of_this_thread")
is_wish: ContextVar[bool] = ContextVar("is_wish", default=False)
limiter = anyio.lowlevel.RunVar[anyio.CapacityLimiter]("holdfast threads")
hung: set[Call] = set()
lock = Lock()


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `function` returns. It runs in a daemon thread, with the caller's context variables.

    Cancelled, this returns at once and abandons the thread.
    """
    if len(hung) >= MOST_ABANDONED:
        raise TooManyAbandoned(
            f"{MOST_ABANDONED} calls were given up and never came back; no more are started. "
            "Give the tools a timeout of their own, and start the program again."
        )
    async with place():
        send, receive = anyio.create_memory_object_stream[Told](math.inf)
        call = Call(anyio.lowlevel.current_token(), send)
        with send, receive:
            start(call, partial(function, *args, **kwargs))
            try:
                outcome = await ended(receive)
            except BaseException:  # cancelled
                abandon(call, receive)
                raise
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # type: ignore[return-value] # what `function` returned


@asynccontextmanager
async def place() -> AsyncIterator[None]:
    """One of the places for running calls, as soon as one is free."""
    if is_wish.get():  # in the place of the thread that waits for it, or all could wait for ever
        yield
        return
    try:
        places = limiter.get()
    except LookupError:
        places = anyio.CapacityLimiter(MOST_RUNNING)
        limiter.set(places)
    borrower = object()  # a task may have several calls
    await places.acquire_on_behalf_of(borrower)
    try:
        yield
    finally:
        places.release_on_behalf_of(borrower)


def start(call: Call, function: Callable[[], object]) -> None:
    context = copy_context()
    context.run(call_of_this_thread.set, call)

    def work() -> None:
        outcome = context.run(outcome_of, function)
        loop: Any = call.token.native_token
        # Without waiting, as `anyio.from_thread` would: the thread can do other work meanwhile.
        soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
        try:
            soon(call.tell, outcome)
        except RuntimeError:
            forget(call)  # the event loop is gone, and everyone who waited with it

    hand_over(work)


class Worker:
    """A thread that does one piece of work after the other, and ends when it had none for long.
    To start a thread for each costs more than most tools do."""

    def __init__(self) -> None:
        self.work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._run, name="holdfast tool", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                work = self.work.get(timeout=IDLE)
            except Empty:
                with lock:
                    if self not in idle:  # just now chosen: the work is on its way
                        continue
                    idle.remove(self)
                return
            work()
            del work  # what a tool held is not held until the next one comes
            with lock:
                idle.append(self)


idle: list[Worker] = []
"""Those without work; the last one ended its work last."""


if hasattr(os, "register_at_fork"):  # a forked process has none of our threads
    os.register_at_fork(after_in_child=idle.clear)


def hand_over(work: Callable[[], None]) -> None:
    with lock:
        worker = idle.pop() if idle else None
    (worker or Worker()).work.put(work)


def outcome_of(function: Callable[[], T]) -> Outcome[T]:
    try:
        return Outcome(function())
    except Exception as error:
        return Outcome(error=error)
    except BaseException as error:
        # `sys.exit()` in a tool is not the end of the program, and a cancellation that a thread
        # raised is none of the task that waits for it.
        wrong = RuntimeError(f"the function raised {error!r}")
        wrong.__cause__ = error
        return Outcome(error=wrong)


async def ended(
    receive: MemoryObjectReceiveStream[Told],
) -> Outcome[object]:
    """Does what the thread wishes until it has ended."""
    while True:
        told = await receive.receive()
        if isinstance(told, Outcome):
            return told
        await grant(told)


async def grant(wish: Wish) -> None:
    before = is_wish.set(True)
    try:
        wish.done.set_result(await wish.do())
    except Exception as error:
        wish.done.set_exception(error)
    except BaseException:
        wish.done.set_exception(Abandoned(GIVEN_UP))
        raise
    finally:
        is_wish.reset(before)


def abandon(call: Call, receive: MemoryObjectReceiveStream[Told]) -> None:
    call.abandoned = True
    with lock:
        hung.add(call)
    while receive.statistics().current_buffer_used:
        call.tell_late(receive.receive_nowait())


def forget(call: Call) -> None:
    with lock:
        hung.discard(call)


def in_loop(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """From a function that runs in a thread: what an async function returns in the event loop.

    `Abandoned` if nobody waits for the thread any more: then it may end as well.
    """
    call = call_of_this_thread.get(None)
    if call is None:
        raise RuntimeError("in_loop works only in a thread that `in_thread` started")
    done: Future[object] = Future()
    wish = Wish(partial(function, *args, **kwargs), done)
    try:
        anyio.from_thread.run_sync(call.tell, wish, token=call.token)
    except RuntimeError:
        raise Abandoned(GIVEN_UP) from None
    return done.result()  # type: ignore[return-value] # what `function` returned


def is_abandoned() -> bool:
    """In a thread of a tool: nobody waits for it any more, so a long loop can end here."""
    call = call_of_this_thread.get(None)
    return call is not None and call.abandoned
