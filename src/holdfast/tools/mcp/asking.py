"""What a server may ask of us: something of the person, our folder, an answer of a model.

The person is asked by way of the call for which the server asks, where that can be known, so that
the question appears in its session; else by way of whoever runs the servers.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from holdfast.core.jsontext import dumped, json_object
from holdfast.tools.base import Context, Filled, Form

if TYPE_CHECKING:
    from mcp.client import ClientRequestContext
    from mcp.types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        ElicitRequestParams,
        ElicitResult,
        ListRootsResult,
    )

Ask: TypeAlias = Callable[[str, Form], Awaitable[Filled]]
"""Asks the person for a server, where no call is known for which it asks."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a server wants to know from a model."""

    messages: tuple[tuple[str, str], ...]
    """Who speaks, `user` or `assistant`, and what they say; what is no text is left out."""
    system: str = ""
    output: int = 1_000
    """Tokens of the answer."""


Sample: TypeAlias = Callable[[str, Sampling], Awaitable[str]]
"""Answers a server with the text of a model. Whoever gives it pays for it."""

calling: ContextVar[Context | None] = ContextVar("calling", default=None)
"""The call on whose behalf this task runs. Over HTTP the SDK carries it to what a server asks."""


class Desk:
    """Takes the questions of one server."""

    def __init__(self, server: str, workspace: Path, ask: Ask, sample: Sample | None) -> None:
        self.server = server
        self.workspace = workspace
        self.ask = ask
        self.sample = sample
        self.running: list[Context] = []
        """The calls that are under way: over pipes, a question of the server is that of the only
        one there is."""

    async def person(self, form: Form) -> Filled:
        context = calling.get()
        if context is None and len(self.running) == 1:
            context = self.running[0]
        if context is not None:
            return await context.ask(form)
        return await self.ask(self.server, form)

    async def elicit(
        self, context: "ClientRequestContext", params: "ElicitRequestParams"
    ) -> "ElicitResult":
        from mcp.types import ElicitRequestURLParams, ElicitResult

        if isinstance(params, ElicitRequestURLParams):
            filled = await self.person(Form(params.message, url=params.url))
            return ElicitResult(action=action(filled))
        schema = dumped(params.requested_schema)
        filled = await self.person(Form(params.message, schema=schema))
        if not filled.accepted:
            return ElicitResult(action=action(filled))
        return ElicitResult.model_validate(
            {"action": "accept", "content": {**defaults(schema), **filled.values}}
        )

    async def roots(self, context: "ClientRequestContext") -> "ListRootsResult":
        from mcp.types import ListRootsResult

        root = {"uri": self.workspace.resolve().as_uri(), "name": self.workspace.name}
        return ListRootsResult.model_validate({"roots": [root]})

    async def message(
        self, context: "ClientRequestContext", params: "CreateMessageRequestParams"
    ) -> "CreateMessageResult":
        from mcp.types import CreateMessageResult, TextContent

        assert self.sample is not None, "offered to the server only if there is one"
        texts = tuple(
            (message.role, block.text)
            for message in params.messages
            for block in message.content_as_list
            if isinstance(block, TextContent)
        )
        wanted = Sampling(texts, params.system_prompt or "", params.max_tokens)
        text = await self.sample(self.server, wanted)
        return CreateMessageResult(
            role="assistant",
            content=TextContent(text=text),
            model="holdfast",
            stop_reason="endTurn",
        )


def action(filled: Filled) -> Literal["accept", "decline", "cancel"]:
    if filled.accepted:
        return "accept"
    return "cancel" if filled.cancelled else "decline"


def defaults(schema: str) -> Mapping[str, object]:
    """What a form holds where the person leaves a field as it is."""
    fields = json_object(schema).get("properties")
    if not isinstance(fields, dict):
        return {}
    return {
        name: field["default"]
        for name, field in fields.items()
        if isinstance(field, dict) and "default" in field
    }
