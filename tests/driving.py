"""A driver for tests, in forty lines: performs the effects of the machine with a real model.

The real one, with time, tasks and a journal, is not needed to see what a model and the loop
make of each other.
"""

from collections.abc import Callable, Mapping

from holdfast.core.effects import CallModel, Effect, RunTools
from holdfast.core.events import (
    Event,
    FromTheWorld,
    ModelFailed,
    ModelReplied,
    Outcome,
    ToolFinished,
    ToolStarted,
    UserSpoke,
)
from holdfast.core.limits import Settings
from holdfast.core.machine import step
from holdfast.core.messages import ToolCall
from holdfast.core.state import NEW
from holdfast.models.base import Model, ModelError, Piece

Tools = Mapping[str, Callable[[ToolCall], str]]


async def drive(model: Model, task: str, tools: Tools, settings: Settings) -> list[Event]:
    """All events of a run."""
    state, log, at = NEW, list[Event](), 0.0
    happened: list[FromTheWorld] = [UserSpoke(task, at, settings)]
    while happened:
        done = step(state, happened.pop(0))
        state = done.state
        log += done.events
        for effect in done.effects:
            at += 1
            happened += await performed(effect, model, tools, at)
    return log


async def performed(effect: Effect, model: Model, tools: Tools, at: float) -> list[FromTheWorld]:
    if isinstance(effect, CallModel):
        return [await asked(effect, model, at)]
    events: list[FromTheWorld] = []
    for call in effect.calls if isinstance(effect, RunTools) else ():
        text = tools[call.name](call)
        events += (
            ToolStarted(call.id, at),
            ToolFinished(call.id, Outcome.DONE, text, at),
        )
    return events


async def asked(effect: CallModel, model: Model, at: float) -> FromTheWorld:
    try:
        got = await model.reply(effect.request, ignore)
    except ModelError as error:
        return ModelFailed(effect.ask, error.failure, error.detail, at, error.window, error.tokens)
    return ModelReplied(effect.ask, got.reply, at, got.usage, got.by, got.notes)


def ignore(piece: Piece) -> None: ...
