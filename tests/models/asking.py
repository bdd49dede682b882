"""What the tests of the clients share: requests to send, and one line for what came of them."""

from collections.abc import Sequence

from holdfast.core.effects import Request
from holdfast.core.messages import Message, UserMessage
from holdfast.core.tools import ToolSpec
from holdfast.models.base import Model, ModelError, Piece, Replied
from holdfast.models.wire import Waits

PATH = '{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}'
READ = ToolSpec(name="read", description="Read a file.", parameters=PATH)
CLOCK = ToolSpec(name="clock", description="The time.")
IMPATIENT = Waits(connect=5, first=0.3, between=0.3)
"""For tests in which the server says nothing any more."""


def request(
    *messages: Message,
    system: str = "You are an agent.",
    tools: tuple[ToolSpec, ...] = (READ,),
    output: int = 200,
) -> Request:
    said: Sequence[Message] = messages or (UserMessage("What is in the file?"),)
    return Request.of(*said, system=system, tools=tools, output=output)


async def outcome(model: Model, asked: Request) -> str:
    """The reply in one line, or the failure."""
    try:
        return line_of(await model.reply(asked, ignore))
    except ModelError as error:
        return failure_line(error)


def ignore(piece: Piece) -> None: ...


def line_of(replied: Replied) -> str:
    reply = replied.reply
    calls = (f"{call.name}({call.arguments})" for call in reply.calls)
    text = reply.text if len(reply.text) < 90 else f"{reply.text[:20]}… {len(reply.text)} chars"
    parts = [repr(text) if text else "", *calls]
    parts += [f"[{reply.finish.value}]"] if reply.finish.value != "stop" else []
    parts += [f"[thought {reply.reasoning!r}]"] if reply.reasoning else []
    parts += [f"[problem {reply.problem!r}]"] if reply.problem else []
    parts += [f"[by {replied.by}]"] if replied.by else []
    parts += [f"({note})" for note in replied.notes]
    return " ".join(filter(None, parts)) or "(nothing)"


def failure_line(error: ModelError) -> str:
    facts = {
        "window": error.window,
        "tokens": error.tokens,
        "wait": error.retry_after,
        "loading": error.loading or None,
    }
    told = " ".join(f"{name}={value}" for name, value in facts.items() if value is not None)
    return f"FAILED {error.failure.value}: {error.detail}" + (f" <{told}>" if told else "")
