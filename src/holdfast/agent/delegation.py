"""An agent as a tool of another one: each call is a session of its own, with limits of its own and
a share of what its caller has left.

The session has its name from the call, so that after a crash the call finds what it had begun, and
goes on there.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from holdfast.agent.result import Result
from holdfast.agent.wiring import Up
from holdfast.core.events import ModelReplied
from holdfast.core.jsontext import dumped
from holdfast.core.limits import Limits, StopReason, Usage
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.journal.base import Stored
from holdfast.runtime.driver import Driver
from holdfast.tools.arguments import reader
from holdfast.tools.base import Access, Arguments, Context, Left, Output, Progress, Tool, Touch

SCHEMA = dumped(
    {
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "All it must know: it sees nothing else."}
        },
        "required": ["task"],
    }
)


def delegate(
    reach: Callable[[], AbstractAsyncContextManager[Up[Any]]],
    name: str,
    description: str,
    share: float,
) -> Tool:
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; it must be above 0 and at most 1")

    async def run(arguments: Arguments, context: Context) -> Output:
        task = str(arguments["task"])
        own = f"{context.session}.{context.call_id}"
        async with (
            reach() as reached,
            reached.engine.session(own, new=True, title=task, parent=context.session) as driver,
        ):
            try:
                result = await watched(reached, driver, task, context, share)
            finally:
                with anyio.CancelScope(shield=True):
                    await context.charge(spent_by(driver))
        failed = result.reason in (StopReason.MODEL_FAILED, StopReason.CANCELLED)
        stopped = "" if result.answered else f"[It stopped: {result.reason.value}]\n"
        return Output(stopped + result.text, failed=failed)

    return Tool(
        spec=ToolSpec(
            name=name,
            description=description,
            parameters=SCHEMA,
            effect=SideEffect.IDEMPOTENT,  # a second run of the call goes on with the first
        ),
        parse=reader(SCHEMA),
        touch=touch,
        run=run,
        timeout=float("inf"),  # its limits end it
        approve=False,  # what its own tools do is asked about there
    )


def touch(arguments: Arguments, workspace: Path) -> Touch:
    return Touch(Access.NONE)


async def watched(
    reached: Up[Any], driver: Driver, task: str, context: Context, share: float
) -> Result[Any]:
    """Do it, or what is left of it, and tell the caller's watchers how it goes."""
    if driver.state.run is not None and driver.state.run.stopped:
        return reached.result(driver, driver.state.run.stopped)
    watcher = driver.bus.watch()

    async def tell() -> None:
        async for each in watcher:
            if isinstance(each, Stored) and isinstance(each.event, ModelReplied):
                for call in each.event.reply.calls:
                    context.tell(Progress(f"{call.name} {call.arguments}"[:200]))

    async with anyio.create_task_group() as group:
        group.start_soon(tell)
        try:
            if resumed := await reached.resume(driver):
                result = resumed
            else:
                left = context.left
                result = await reached.run(driver, task, lambda own: shared(own, left, share))
        finally:
            watcher.close()
    return result


def shared(own: Limits, left: Left, share: float) -> Limits:
    """Its own limits, and no more than the share of what is left."""
    return replace(
        own,
        rounds=min(own.rounds, max(1, int(left.rounds * share))),
        calls=min(own.calls, max(1, int(left.calls * share))),
        tokens=min(own.tokens, max(1, int(left.tokens * share))),
        cost=min(own.cost, max(1, int(left.cost * share))),
        seconds=min(own.seconds, max(1.0, left.seconds * share)),
    )


def spent_by(driver: Driver) -> Usage:
    run = driver.state.run
    if run is None:
        return Usage()
    spent = run.spent
    return Usage(
        prompt=spent.prompt, completion=spent.completion, cached=spent.cached, cost=spent.cost
    )
