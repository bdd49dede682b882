"""Blocking work that is given up does not hold up anything."""

import subprocess
import sys
import threading
from concurrent.futures import Future
from contextvars import ContextVar

import anyio
import pytest

from holdfast.tools import threads
from holdfast.tools.threads import Abandoned, Outcome, in_loop, in_thread, is_abandoned, when_late


async def test_a_function_runs_in_a_daemon_thread_with_the_callers_context() -> None:
    colour = ContextVar("colour", default="none")
    colour.set("green")

    def look(prefix: str) -> tuple[str, bool, bool]:
        thread = threading.current_thread()
        return prefix + colour.get(), thread.daemon, thread is threading.main_thread()

    assert await in_thread(look, prefix="it is ") == ("it is green", True, False)


async def test_what_a_function_raises_is_raised_where_it_was_called() -> None:
    def fail() -> None:
        raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing"):
        await in_thread(fail)


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
async def test_a_function_that_ends_the_program_ends_only_its_call(ending: BaseException) -> None:
    def end() -> None:
        raise ending

    with pytest.raises(RuntimeError, match="the function raised") as wrong:
        await in_thread(end)
    assert wrong.value.__cause__ is ending


async def test_a_cancelled_call_returns_at_once_and_its_late_result_is_told() -> None:
    started, may_end = anyio.Event(), threading.Event()
    late: list[Outcome[object]] = []
    told = anyio.Event()

    def take_in(outcome: Outcome[object]) -> None:
        late.append(outcome)
        told.set()

    async def begin() -> None:
        started.set()

    def block() -> tuple[str, bool]:
        in_loop(begin)
        may_end.wait(30)
        return "after all", is_abandoned()

    when_late.set(take_in)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, block)
            await started.wait()
            group.cancel_scope.cancel()
        assert (late, len(threads.hung)) == ([], 1)
        may_end.set()
        await told.wait()

    assert (late, len(threads.hung)) == ([Outcome(("after all", True))], 0)


async def test_a_thread_can_ask_the_event_loop_and_gets_its_errors() -> None:
    async def double(number: int) -> int:
        await anyio.lowlevel.checkpoint()
        if number < 0:
            raise ValueError("too small")
        return number * 2

    def work() -> list[object]:
        try:
            in_loop(double, -1)
        except ValueError as wrong:
            return [in_loop(double, 1), in_loop(double, number=2), str(wrong)]
        return []

    assert await in_thread(work) == [2, 4, "too small"]


async def test_an_abandoned_thread_that_asks_is_told_that_nobody_waits() -> None:
    started, may_ask = anyio.Event(), threading.Event()
    answers: list[object] = []
    told = anyio.Event()

    async def begin() -> None:
        started.set()

    async def forever() -> None:
        await anyio.sleep_forever()

    def ask_late() -> None:
        in_loop(begin)
        may_ask.wait(30)
        in_loop(forever)

    def take_in(outcome: Outcome[object]) -> None:
        answers.append(type(outcome.error))
        told.set()

    when_late.set(take_in)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, ask_late)
            await started.wait()
            group.cancel_scope.cancel()
        may_ask.set()
        await told.wait()

    assert answers == [Abandoned]


async def test_a_thread_that_waits_for_the_loop_is_freed_when_it_is_given_up() -> None:
    waiting, told = anyio.Event(), anyio.Event()
    answers: list[object] = []

    async def forever() -> None:
        waiting.set()
        await anyio.sleep_forever()

    def ask() -> None:
        in_loop(forever)

    def take_in(outcome: Outcome[object]) -> None:
        answers.append(type(outcome.error))
        told.set()

    when_late.set(take_in)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, ask)
            await waiting.wait()
            group.cancel_scope.cancel()
        await told.wait()

    assert answers == [Abandoned]


async def test_a_wish_that_arrives_with_the_cancellation_is_answered_too() -> None:
    send, receive = anyio.create_memory_object_stream[threads.Told](2)
    call = threads.Call(anyio.lowlevel.current_token(), send)
    done: Future[object] = Future()
    with send, receive:
        call.tell(threads.Wish(anyio.sleep_forever, done))
        call.tell(Outcome("at the last moment"))
        threads.abandon(call, receive)

    assert isinstance(done.exception(5), Abandoned)
    assert call not in threads.hung


async def test_all_threads_at_once_can_ask_for_work_that_needs_a_thread() -> None:
    all_in = threading.Barrier(threads.MOST_RUNNING)

    def work() -> str:
        all_in.wait(30)
        return in_loop(in_thread, str, 7)

    answers: list[str] = []

    async def one() -> None:
        answers.append(await in_thread(work))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(threads.MOST_RUNNING):
                group.start_soon(one)

    assert answers == ["7"] * threads.MOST_RUNNING


def test_only_a_thread_of_ours_can_ask_the_event_loop() -> None:
    with pytest.raises(RuntimeError, match="in_thread"):
        in_loop(anyio.sleep, 0)


async def test_more_calls_than_allowed_at_once_wait_for_their_turn() -> None:
    lock, most, now = threading.Lock(), [0], [0]
    all_in = threading.Barrier(threads.MOST_RUNNING)

    def work(first: bool) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        if first:
            all_in.wait(30)
        with lock:
            now[0] -= 1

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number in range(threads.MOST_RUNNING + 20):
                group.start_soon(in_thread, work, number < threads.MOST_RUNNING)

    assert most == [threads.MOST_RUNNING]


async def test_abandoned_calls_free_their_place_until_there_are_far_too_many() -> None:
    may_end, back = threading.Event(), anyio.Event()

    def one_is_back(_: Outcome[object]) -> None:
        if not threads.hung:
            back.set()

    when_late.set(one_is_back)
    with anyio.fail_after(50):
        for _ in range(threads.MOST_ABANDONED // 32):
            async with anyio.create_task_group() as group:
                started = [0]
                all_in = anyio.Event()

                async def begin(started: list[int] = started, done: anyio.Event = all_in) -> None:
                    started[0] += 1
                    if started[0] == 32:
                        done.set()

                def block(begin: object = begin) -> None:
                    in_loop(begin)  # type: ignore[arg-type]
                    may_end.wait(50)

                for _ in range(32):
                    group.start_soon(in_thread, block)
                await all_in.wait()
                group.cancel_scope.cancel()

        with pytest.raises(threads.TooManyAbandoned, match="256 calls were given up"):
            await in_thread(str)
        may_end.set()
        await back.wait()
        assert await in_thread(str, 5) == "5"


BLOCKED = """
import threading, anyio
from holdfast.tools.threads import in_thread
async def main():
    with anyio.move_on_after(0.05):
        await in_thread(threading.Event().wait)
    print("given up", flush=True)
anyio.run(main)
"""


def test_a_process_ends_while_an_abandoned_call_still_blocks() -> None:
    done = subprocess.run(
        (sys.executable, "-W", "error", "-c", BLOCKED), capture_output=True, text=True, timeout=30
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "given up\n", "")


LATE = """
import threading, anyio
from holdfast.tools import threads
from holdfast.tools.threads import in_thread
go = threading.Event()
back = threading.Event()
def block():
    go.wait(20)
    back.set()
async def main():
    with anyio.move_on_after(0.05):
        await in_thread(block)
anyio.run(main)
go.set()
back.wait(20)
while any(thread.name == "holdfast tool" for thread in threading.enumerate()):
    pass
print("quiet", len(threads.hung))
"""


def test_a_call_that_comes_back_after_its_loop_is_gone_says_nothing() -> None:
    done = subprocess.run(
        (sys.executable, "-W", "error", "-c", LATE), capture_output=True, text=True, timeout=30
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "quiet 0\n", "")
