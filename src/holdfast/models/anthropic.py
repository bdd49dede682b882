"""Anthropic's `/v1/messages`, which llama.cpp and others serve too.

The client only translates: each event becomes a chunk as `chunks` reads it. How the server says no
is in `failures`, whether to try again in `fallback`.

Two marks tell the server what to keep for the next request: one after the system prompt, with the
tools before it, and one after the last message that stays, so before the instructions for this
request alone. The second moves on with every request. That changes nothing of what was read
before, since the marks are no part of the prompt, and costs the bytes of one message.

Thoughts that the provider signed go back to it, unchanged, with the calls they came with; without
them it refuses the request. It also refuses those which it finds under another history than that
of their birth, as after an eviction: then they are left out for good.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from time import time
from typing import assert_never

from holdfast.core.effects import Request
from holdfast.core.events import Failure
from holdfast.core.jsontext import STRICT, dumped, parsed
from holdfast.core.messages import (
    AssistantMessage,
    Message,
    Note,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.core.tools import ToolSpec
from holdfast.models.base import Count, ModelError, Replied, Tell
from holdfast.models.blocks import MessageSoFar, events_of
from holdfast.models.catalog import Prices
from holdfast.models.encoding import Encoded, Encoder, Shape, outer_name, parameters, shaped
from holdfast.models.failures import failure_in, failure_of, json_in, number_in
from holdfast.models.reading import paid, understood
from holdfast.models.sse import Event, Events
from holdfast.models.telling import Telling
from holdfast.models.wire import Answer, Waits, Wire

VERSION = "2023-06-01"
USER = Shape(b'{"role":"user","content":[', b",", b"]}")
ASSISTANT = Shape(b'{"role":"assistant","content":[', b",", b"]}")
KEPT = ',"cache_control":{"type":"ephemeral"}}'
"""The end of a block that the server is to keep, and all before it."""
NO_TOOL = (
    b',"tools":[{"name":"none","description":"No tool can be called now.",'
    b'"input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"none"}'
)
"""For servers that refuse a history with calls in it where no tool is offered."""
COUNTED = ("thinking", "tool_choice")
"""Those of the fields that a request to count may have."""
FULL = "model_context_window_exceeded"


class Remedy(Enum):
    """What a request can do without, or needs, where a server refuses it."""

    MARKS = "without marks for the cache"
    TOOLS = "with a tool that stands for none"
    THINKING = "without thinking"
    """It was told to think, and there is a round without thoughts, or too little room for them."""
    THOUGHTS = "without the thoughts of before"


REMEDIES = (
    (re.compile("cache_control"), Remedy.MARKS),
    (re.compile("must define tools"), Remedy.TOOLS),
    (re.compile("Expected `thinking`|must be passed back|budget_tokens"), Remedy.THINKING),
    (re.compile(r"thinking\W{1,3}block|signature"), Remedy.THOUGHTS),
)
"""By the words of the refusal. Each is tried once for a request, so that asking again ends."""


class Anthropic:
    """One model of one server."""

    def __init__(
        self,
        base: str,
        model: str,
        *,
        name: str = "",
        key: str = "",
        headers: Mapping[str, str] | None = None,
        fields: Mapping[str, object] | None = None,
        prices: Prices | None = None,
        window: int | None = None,
        streams: bool = True,
        waits: Waits | None = None,
    ) -> None:
        """`base` ends where `/v1` begins. `fields` go into every request as they are: how to
        think, a temperature. `window`: the tokens the model can read, if known."""
        self.name = name or model
        self.model = model
        self.window = window
        self._prices = prices
        self._streams = streams
        self._fields = dict(fields or {})
        known = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}
        base = base.rstrip("/").removesuffix("/v1")
        self._wire = Wire(base, {**known, **(headers or {})}, waits)
        self._encoder = Encoder(self._encoded)
        self._told_of: tuple[str | None, tuple[ToolSpec, ...]] = None, ()
        self._told = b""
        """What begins every request and seldom changes: encoded once, like the messages."""
        self._void: set[int] = set()
        """What was owed and is refused now, by its hash."""
        self._marks = True
        self._needs_tools = False

    async def reply(self, request: Request, tell: Tell, *, attempt: int = 0) -> Replied:
        """Nothing can be changed for another `attempt`: the provider takes no seed, and seldom
        says the same twice."""
        tried: dict[Remedy, str] = {}
        while True:
            try:
                replied = await self._ask(request, tell, thinks=Remedy.THINKING not in tried)
            except ModelError as error:
                remedy = self._remedy(error)
                if remedy is None or remedy in tried:
                    raise
                tried[remedy] = f"asked again {remedy.value}, because {error.detail}"
                self._apply(remedy, request)
            else:
                return replace(replied, notes=(*tried.values(), *replied.notes))

    async def count(self, request: Request) -> Count | None:
        try:
            body = self._body(request, {name: self._fields.get(name) for name in COUNTED})
            counted = await self._wire.post_json("/v1/messages/count_tokens", body)
        except ModelError:
            return None
        tokens = number_in(counted.get("input_tokens")) if isinstance(counted, dict) else None
        return Count(int(tokens), "the server") if tokens else None

    async def aclose(self) -> None:
        self._encoder.forget()
        await self._wire.aclose()

    def body(self, request: Request, *, streams: bool = False) -> bytes:
        """The request as it is sent."""
        return self._body(request, self._all_fields(request, streams=streams))

    def _all_fields(self, request: Request, *, streams: bool) -> dict[str, object]:
        stream = {"stream": True} if streams else {}
        return {"max_tokens": request.output, **stream, **self._fields}

    def _body(self, request: Request, fields: Mapping[str, object]) -> bytes:
        given = {name: value for name, value in fields.items() if value is not None}
        if not request.tools:
            given.pop("tool_choice", None)  # it is refused without any to choose from
        pieces = self._encoder.messages(request)
        # Parts and what stands between them take turns, so this is the last part that stays.
        last = len(pieces) - 2 - 2 * len(request.tail)
        if self._marks and last > 0:
            pieces[last] = pieces[last][:-1] + KEPT.encode()
        head = dumped({"model": self.model, **given})[:-1].encode()
        return b"".join((head, self._prompt(request), b',"messages":[', *pieces, b"]}"))

    def _prompt(self, request: Request) -> bytes:
        """The tools and the system prompt."""
        if not request.tools and self._needs_tools and any(map(has_calls, request.messages)):
            return NO_TOOL + self._encoded_prompt(request)
        if self._told_of[0] is not request.system or self._told_of[1] is not request.tools:
            self._told_of = request.system, request.tools
            self._told = self._encoded_prompt(request)
        return self._told

    def _encoded_prompt(self, request: Request) -> bytes:
        tools, system = ",".join(map(definition, request.tools)), text_block(request.system)
        has_system, mark = bool(request.system.strip()), KEPT if self._marks else "}"
        told = f',"tools":[{tools if has_system else tools[:-1] + mark}]' if tools else ""
        return f'{told},"system":[{system[:-1]}{mark}]'.encode() if has_system else told.encode()

    def _encoded(self, message: Message) -> Encoded:
        if isinstance(message, AssistantMessage) and hash(message.owed) in self._void:
            message = replace(message, owed="")
        return native(message)

    async def _ask(self, request: Request, tell: Tell, *, thinks: bool) -> Replied:
        so_far = MessageSoFar(keeps_unsigned=self._is_told_to_think())
        telling = Telling(tell, hides_calls=bool(request.tools))
        fields = self._all_fields(request, streams=self._streams)
        body = self._body(request, fields if thinks else {**fields, "thinking": None})
        async with self._wire.post("/v1/messages", body) as answer:
            if answer.status != 200:
                data = await answer.beginning()
                raise failure_of(answer.status, answer.headers, data, now=time())
            data = await answer.read()
            if answer.kind == "text/event-stream" or data.startswith((b"event:", b"data:", b":")):
                await stream(answer, data, so_far, telling)
            else:
                for event in events_of(json_in(data + await answer.rest())):
                    for piece in so_far.feed(event):
                        telling.of(piece)
            whole = self._settled(so_far)
        replied = understood(whole, request.tools, spoken=False)
        telling.settle(replied.reply.text)
        return replied

    def _settled(self, so_far: MessageSoFar) -> Replied:
        """The reply with its price; none, if the window ended it and not the model."""
        return paid(
            so_far.finish(),
            self.window,
            self._prices,
            written=so_far.written,
            full=so_far.reason == FULL,
        )

    def _is_told_to_think(self) -> bool:
        how = self._fields.get("thinking")
        return isinstance(how, dict) and how.get("type") in ("enabled", "adaptive")

    def _remedy(self, error: ModelError) -> Remedy | None:
        """What can be done about a refusal before the same is asked again."""
        if error.failure is not Failure.REJECTED or not error.detail.startswith("HTTP"):
            return None  # in the middle of a reply it is too late
        return next((remedy for words, remedy in REMEDIES if words.search(error.detail)), None)

    def _apply(self, remedy: Remedy, request: Request) -> None:
        match remedy:
            case Remedy.MARKS:
                self._marks, self._told_of = False, (None, ())
            case Remedy.TOOLS:
                self._needs_tools = True
            case Remedy.THINKING:
                pass  # for this request alone
            case Remedy.THOUGHTS:
                said = (each for each in request.messages if isinstance(each, AssistantMessage))
                self._void |= {hash(each.owed) for each in said if each.owed}
                self._encoder = Encoder(self._encoded)
            case _:
                assert_never(remedy)


async def stream(answer: Answer, data: bytes, so_far: MessageSoFar, telling: Telling) -> None:
    """Read events until one says that the message is complete, or they end."""
    events = Events()
    while data:
        for event in events.feed(data):
            if not isinstance(event, Event) or event.name == "ping":
                continue  # the connection lives, which says nothing of the model
            answer.is_alive()
            value = json_in(event.data)
            if event.name == "error":
                raise failure_in(value)
            for piece in so_far.feed(value):
                telling.of(piece)
            if so_far.stopped:
                return await answer.end()
        data = await answer.read()


# --- messages and tools as this format has them -------------------------------------------------


def native(message: Message) -> Encoded:
    match message:
        case UserMessage(text) | Note(text):
            return shaped(USER, text_block(text))
        case ToolMessage(call_id, _, text, failed):
            id_, error = dumped(call_id), ',"is_error":true' if failed else ""
            return shaped(
                USER,
                f'{{"type":"tool_result","tool_use_id":{id_},"content":{filled(text)}{error}}}',
            )
        case AssistantMessage(text, ()):
            return shaped(ASSISTANT, text_block(text))
        case AssistantMessage(text, calls, owed):
            return shaped(ASSISTANT, ",".join(blocks(text, calls, thoughts_in(owed))))
        case _:
            assert_never(message)


def has_calls(message: Message) -> bool:
    return isinstance(message, AssistantMessage) and bool(message.calls)


def blocks(
    text: str, calls: tuple[ToolCall, ...], thoughts: list[tuple[int, str]]
) -> Iterator[str]:
    for place, each in enumerate(calls):
        yield from (thought for before, thought in thoughts if before == place)
        if place == 0 and text.strip():
            yield text_block(text)
        yield call(each)


def text_block(text: str) -> str:
    return f'{{"type":"text","text":{filled(text)}}}'


def filled(text: str) -> str:
    """As JSON. A text without a character to be seen is refused."""
    return dumped(text if text.strip() else "(nothing)")


def call(each: ToolCall) -> str:
    name = dumped(outer_name(each.name))
    return f'{{"type":"tool_use","id":{dumped(each.id)},"name":{name},"input":{each.arguments}}}'


def thoughts_in(owed: str) -> list[tuple[int, str]]:
    """What `MessageSoFar` sealed; nothing, if another client did."""
    thoughts: list[tuple[int, str]] = []
    try:
        sealed = parsed(owed, STRICT) if owed else None
        for each in sealed if isinstance(sealed, list) else ():
            match each:
                case [int(before), {"type": "thinking" | "redacted_thinking"} as thought]:
                    thoughts.append((before, dumped(thought)))
    except ValueError:
        return []
    return thoughts


def definition(tool: ToolSpec) -> str:
    described = f'"description":{dumped(tool.description)},' if tool.description else ""
    name = dumped(outer_name(tool.name))
    return f'{{"name":{name},{described}"input_schema":{parameters(tool)}}}'
