"""What a model meant: calls it wrote as text are taken for calls, and arguments are mended. And
what it cost.

All clients end here, since text calls are the normal case and not the odd one: llama.cpp with a
model's own template hands them over as text (`dialects`). Nothing that was cut off is completed.
"""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.core.events import Failure, Finish, Reply, WantedCall
from holdfast.core.tools import ToolSpec
from holdfast.models.base import ModelError, Replied
from holdfast.models.catalog import Prices, cost
from holdfast.models.dialects import CUT, read
from holdfast.models.repair import repaired

BRACKETS = "{[<`~"
"""No call can be written without one of these, and most answers have none. Of a fenced block of
Python only the fence is among them."""


def understood(replied: Replied, tools: tuple[ToolSpec, ...], *, spoken: bool) -> Replied:
    """The reply with its calls. `spoken`: the model was told to write them as text."""
    notes: list[str] = []
    reply = replied.reply
    if reply.calls:
        if reply.finish is not Finish.LENGTH:  # `{"index": 7` may have been 71
            reply = replace(reply, calls=tuple(mended(reply.calls, notes)))
    elif reply.text and (tools or spoken):
        reply = heard(reply, tools, notes)
    if reply is replied.reply:
        return replied
    return replace(replied, reply=reply, notes=tuple(dict.fromkeys((*replied.notes, *notes))))


def paid(
    replied: Replied,
    window: int | None,
    prices: Prices | None,
    *,
    written: int = 0,
    full: bool = False,
) -> Replied:
    """The reply with its price; an overflow, if the window ended it and not the model. `written`:
    tokens that the server keeps for the next time. `full`: it says itself that it was full."""
    usage = replied.usage
    total = usage.prompt + usage.completion if usage else 0
    if full or replied.reply.finish is Finish.LENGTH and window and total >= window:
        raise ModelError(
            Failure.OVERFLOW,
            f"the window{f' of {window} tokens' if window else ''} was full before the reply was "
            "complete",
            window=window,
            tokens=usage.prompt if usage else None,
        )
    if usage is None or prices is None:
        return replied
    return replace(replied, usage=replace(usage, cost=cost(usage, prices, written=written)))


def mended(calls: tuple[WantedCall, ...], notes: list[str]) -> Iterator[WantedCall]:
    for call in calls:
        right = repaired(call.arguments or "{}")
        if right is not None and right.arguments != call.arguments:
            notes += (f"arguments of {call.name} mended: {fix}" for fix in right.fixes)
            call = replace(call, arguments=right.arguments)
        yield call


def heard(reply: Reply, tools: tuple[ToolSpec, ...], notes: list[str]) -> Reply:
    if not any(bracket in reply.text for bracket in BRACKETS):
        return reply
    spoken = read(reply.text, {tool.name: tool.parameters for tool in tools})
    if not (spoken.calls or spoken.final or spoken.problem):
        return reply
    if reply.finish is Finish.LENGTH and not spoken.final:
        return replace(reply, problem=CUT)
    notes += (f"mended: {fix}" for fix in spoken.fixes)
    if spoken.calls:
        notes.append("a call written as text")
        return replace(reply, text=spoken.text, calls=spoken.calls, problem=spoken.problem)
    if spoken.final:
        return replace(reply, text=spoken.final.answer)
    return replace(reply, problem=spoken.problem)
