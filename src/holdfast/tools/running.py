"""A call that may run, and what comes of it: a result, a failure, or nothing in time.

How a task that does not stop is left behind is `detached`, how a value becomes text `results`.
Whether the call may run was decided by `gateway`.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from inspect import isgeneratorfunction
from pathlib import Path

import anyio

from holdfast.core.cut import cut
from holdfast.core.events import Attached, Outcome, ToolFinished
from holdfast.core.instructions import PERHAPS
from holdfast.core.messages import ToolCall
from holdfast.core.tools import SideEffect
from holdfast.tools import threads
from holdfast.tools.barred import barred
from holdfast.tools.base import (
    Arguments,
    Context,
    Filled,
    Form,
    Left,
    Output,
    Progress,
    Tool,
    ToolError,
)
from holdfast.tools.detached import Detached, Ended
from holdfast.tools.door import Door, Read
from holdfast.tools.function import FunctionTool
from holdfast.tools.results import error_text, output_of

LARGEST = 50_000_000
"""Characters or bytes of one result that are kept. No disk is meant to take more for one call."""


async def run(read: Read, door: Door, *, seconds: float, grace: float) -> ToolFinished:
    """The result of a call that may run. It is stopped after `seconds`, and abandoned if that takes
    it longer than `grace`; what comes after we stopped waiting is recorded all the same."""
    tool, call = read.tool, read.call

    async def late(ended: Ended[object]) -> None:
        try:
            await door.record(await finished(call, ended, door))
        except Exception:  # the session is closed: nobody is left to be told
            return

    def late_thread(outcome: threads.Outcome[object]) -> None:
        gave_up = isinstance(outcome.error, threads.Abandoned)  # so nothing came of it
        if detached.is_told_to_stop and not gave_up:  # else the tool itself gave the thread up
            door.spawn(lambda: late(Ended(outcome.value, outcome.error)))

    async def work() -> object:
        if is_one_thread(tool):
            threads.when_late.set(late_thread)
        barred.set(read.barred)
        return await result(tool, read.arguments, context)

    detached = Detached(work, late, door.spawn)
    context = Unhurried(door.context(call, tool), detached)
    ended = await detached.wait(seconds, grace)
    if ended is None or ended.stopped or (ended.error and detached.is_told_to_stop):
        left = ended is None or any(one.late is late_thread for one in hung())
        return timed_out(read, seconds, door, abandoned=left)
    return await finished(call, ended, door)


def is_one_thread(tool: Tool) -> bool:
    """What its thread returns is its result. A tool of several steps may be stopped between two,
    and what a step still returns must not be taken for the end."""
    return isinstance(tool, FunctionTool) and not isgeneratorfunction(tool.function)


def hung() -> tuple[threads.Call, ...]:
    with threads.lock:
        return tuple(threads.hung)


async def result(tool: Tool, arguments: Arguments, context: Context) -> object:
    """What the tool returns, or yields last."""
    running = tool.run(arguments, context)
    if not isinstance(running, AsyncIterator):
        return await running
    last: object = None
    try:
        async for item in running:
            if isinstance(item, Progress):
                context.tell(item)
            else:
                last = item
    finally:
        if isinstance(running, AsyncGenerator):
            await running.aclose()
    return last


async def finished(call: ToolCall, ended: Ended[object], door: Door) -> ToolFinished:
    """The end of a tool as a fact. What is no failure of the tool is raised again."""
    if ended.error is None:
        output = output_of(ended.value)
    else:
        output = Output(failure(ended.error), failed=True)
    outcome = Outcome.FAILED if output.failed else Outcome.DONE
    text = output.text
    attached: list[Attached] = []
    for binary in output.binaries:
        if len(binary.data) > LARGEST:
            text += f"\n[{len(binary.data)} bytes were not kept: more than {LARGEST}]"
            continue
        blob = await door.keep_blob(binary.data)
        attached.append(Attached(binary.media, len(binary.data), blob))
    text = cut(text, LARGEST)
    return ToolFinished(call.id, outcome, text, door.now(), tuple(attached))


def timed_out(read: Read, seconds: float, door: Door, *, abandoned: bool) -> ToolFinished:
    words = [f"{read.tool.name} was stopped: it took longer than {seconds:g} seconds."]
    if abandoned:
        words.append("It did not stop when told to and was abandoned; it may still be at work.")
    if read.tool.spec.effect is not SideEffect.READ:
        words.append(PERHAPS)
    return ToolFinished(read.call.id, Outcome.TIMED_OUT, " ".join(words), door.now())


# --- words for the model ------------------------------------------------------------------------


def failure(error: BaseException) -> str:
    """Why a tool failed. Whoever interrupts the program is no failure of the tool, but `sys.exit()`
    is: it belongs to whoever wrote the tool, not to whoever runs the program."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, ToolError):
        return str(error)
    if isinstance(error, ExceptionGroup):
        return "\n".join(failure(one) for one in error.exceptions)
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return "The tool gave up: something it waited for was cancelled."
    if isinstance(error, SystemExit):
        return f"The tool tried to end the program ({error!r}). It goes on; the tool failed."
    if not isinstance(error, Exception):
        raise error
    return f"{surprise(error)} Other arguments or another tool may work."


def surprise(error: Exception) -> str:
    return f"{error_text(error)}. The tool did not expect this error."


# --- what the tool sees ---------------------------------------------------------------------------


class Unhurried:
    """The context of a call, whose time does not run while a person is asked."""

    def __init__(self, context: Context, work: Detached[object]) -> None:
        self._context, self._work = context, work
        self.session, self.call_id, self.key = context.session, context.call_id, context.key
        self.tell, self.keep, self.result = context.tell, context.keep, context.result
        self.found, self.charge = context.found, context.charge

    @property
    def workspace(self) -> Path:
        return self._context.workspace

    @property
    def left(self) -> Left:
        return self._context.left

    async def ask(self, form: Form) -> Filled:
        with self._work.resting():
            return await self._context.ask(form)
