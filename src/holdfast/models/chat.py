"""`/v1/chat/completions`, as every OpenAI-compatible server speaks it more or less.

The client only translates. On the way out each message is encoded once (`encoding`) and sent
(`wire`). On the way back bytes become events (`sse`), events become pieces (`chunks`), which are told
to people (`telling`), and at the end a reply, in which calls written as text are found (`reading`).
What servers do otherwise than they should is written in `chunks` and `failures`; whether to try
again is decided in `fallback`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
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
from holdfast.models.base import Count, ModelError, Reading, Replied, Tell
from holdfast.models.catalog import Prices
from holdfast.models.chunks import EXTRA, ReplySoFar
from holdfast.models.counting import counted_here
from holdfast.models.encoding import (
    WHOLE,
    Encoded,
    Encoder,
    Shape,
    in_string,
    outer_name,
    parameters,
    shaped,
)
from holdfast.models.failures import failure_in, failure_of, json_in, number_in
from holdfast.models.reading import paid, understood
from holdfast.models.spoken import Dialect, history_result, history_text, instructions, schema
from holdfast.models.sse import Event, Events
from holdfast.models.telling import Telling
from holdfast.models.wire import Answer, Waits, Wire

USER = Shape(b'{"role":"user","content":"', b"\\n\\n", b'"}')
ASSISTANT = Shape(b'{"role":"assistant","content":"', b"\\n\\n", b'"}')
DONE = "[DONE]"
FEW_HEADS = 32
"""How many are kept of what changes only with the number of a try and the room for a reply."""
LLAMA_CPP, VLLM = "/chat/completions/input_tokens", "/tokenize"
"""Where these count the tokens of a request, behind the API and beside it."""
STREAM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")
"""How a stream begins, where its type does not say that it is one."""
UNKNOWN = re.compile(
    r"(?i)unsupported|not supported|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed"
    r"|extra.?(?:inputs|fields|forbidden)"
)
DISPENSABLE: Mapping[str, str] = {
    "stream_options": "",
    "seed": "",
    "max_tokens": "max_completion_tokens",
    "response_format": "",
}
"""What we add to a request and some servers refuse, with the name they know it by. A refusal that
names one of these is answered by asking without it."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What begins every request and seldom changes: encoded once, like the messages."""

    system: str | None = None
    of: tuple[ToolSpec, ...] = ()
    tools: bytes = b""
    first: tuple[Encoded, ...] = ()


class Chat:
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
        speaks: Dialect | None = None,
        window: int | None = None,
        prices: Prices | None = None,
        streams: bool = True,
        waits: Waits | None = None,
    ) -> None:
        """`base` ends where `/chat/completions` begins. `fields` go into every request as they
        are: a temperature, what one server alone understands. `speaks`: how a model without tools
        of its own is told to call them. `window`: the size that the server has loaded, if known."""
        self.name = name or model
        self.model = model
        self.window = window
        self._speaks = speaks
        self._prices = prices
        self._streams = streams
        self._fields = dict(fields or {})
        dumped(self._fields)  # what cannot be sent is refused now
        authorization = {"Authorization": f"Bearer {key}"} if key else {}
        root = base.rstrip("/").removesuffix("/v1")
        self._api = base.rstrip("/")[len(root) :]
        self._wire = Wire(root, {**authorization, **(headers or {})}, waits)
        self._encoder = Encoder(partial(spoken, speaks) if speaks else native)
        self._prompt = Prompt()
        self._heads: dict[tuple[int, int, bool], bytes] = {}
        self._refused: set[str] = set()

    async def reply(self, request: Request, tell: Tell, *, attempt: int = 0) -> Replied:
        streams, notes = self._streams, list[str]()
        while True:
            telling = Telling(tell, hides_calls=bool(request.tools))
            pieces = self.pieces(request, attempt=attempt, streams=streams)
            try:
                replied = await self._ask(request, b"".join(pieces), telling)
            except ModelError as error:
                if streams and error.unexplained:
                    streams = False
                    notes.append(f"asked again without a stream, because {error.detail}")
                elif field := refused_field(error, pieces):
                    self._without(field)
                    notes.append(f"asked again without {field}, which the server does not know")
                else:
                    raise
                telling.take_back(error.detail)
            else:
                replied = replace(replied, notes=(*notes, *replied.notes)) if notes else replied
                return paid(replied, self.window, self._prices)

    async def aclose(self) -> None:
        self._encoder.forget()
        await self._wire.aclose()

    async def count(self, request: Request) -> Count | None:
        """By the server's own tokenizer and template, where it offers that; else by one here."""
        body = self.body(request)
        for path, field in ((self._api + LLAMA_CPP, "input_tokens"), (VLLM, "count")):
            try:
                counted = await self._wire.post_json(path, body)
            except ModelError:
                continue
            if isinstance(counted, dict) and (tokens := number_in(counted.get(field))):
                return Count(int(tokens), "the server")
        return counted_here(self.model, request)

    def body(self, request: Request, *, attempt: int = 0, streams: bool = False) -> bytes:
        """The request as it is sent."""
        return b"".join(self.pieces(request, attempt=attempt, streams=streams))

    def pieces(self, request: Request, *, attempt: int = 0, streams: bool = False) -> list[bytes]:
        """The same, not yet put together: most of it was made for an earlier request."""
        key = (request.output, attempt, streams)
        if key not in self._heads:
            if len(self._heads) >= FEW_HEADS:
                self._heads.clear()
            self._heads[key] = self._head(*key)
        if self._prompt.of is not request.tools or self._prompt.system is not request.system:
            self._prompt = self._told(request)
        messages = self._encoder.messages(request, *self._prompt.first)
        return [self._heads[key], self._prompt.tools, b',"messages":[', *messages, b"]}"]

    def _head(self, output: int, attempt: int, streams: bool) -> bytes:
        """Everything but the conversation, without the closing brace."""
        fields: dict[str, object] = {"model": self.model, "max_tokens": output}
        if streams:
            fields |= {"stream": True, "stream_options": {"include_usage": True}}
        fields |= self._fields
        if attempt:  # the same again would only fail the same way
            seed = fields.get("seed")
            fields["seed"] = attempt + (seed if isinstance(seed, int) else 0)
        for refused in self._refused & fields.keys():
            value, other = fields.pop(refused), DISPENSABLE[refused]
            if other:
                fields[other] = value
        return dumped(fields)[:-1].encode()

    def _told(self, request: Request) -> "Prompt":
        system, tools, dialect = request.system, request.tools, self._speaks
        offered = b""
        if tools and dialect is None:
            offered = f',"tools":[{",".join(map(definition, tools))}]'.encode()
        elif tools and dialect:
            system = f"{system}\n\n{instructions(tools, dialect)}".strip()
            if dialect is Dialect.JSON and "response_format" not in self._refused:
                allowed = dumped({"name": "reply", "strict": True, "schema": schema(tools)})
                allowed = f'{{"type":"json_schema","json_schema":{allowed}}}'
                offered = f',"response_format":{allowed}'.encode()
        first = f'{{"role":"system","content":{dumped(system)}}}'
        return Prompt(request.system, tools, offered, (shaped(WHOLE, first),) if system else ())

    async def _ask(self, request: Request, body: bytes, telling: Telling) -> Replied:
        so_far, path = ReplySoFar(), f"{self._api}/chat/completions"
        async with self._wire.post(path, body) as answer:
            if answer.status != 200:
                data = await answer.beginning()
                where = self._wire.base + path
                raise failure_of(answer.status, answer.headers, data, now=time(), where=where)
            data = await answer.read()
            if answer.kind == "text/event-stream" or STREAM.match(data):
                await stream(answer, data, so_far, telling)
            else:
                telling.thoughts(so_far.whole(json_in(data + await answer.rest())))
            whole = so_far.finish()
        replied = understood(whole, request.tools, spoken=self._speaks is not None)
        telling.settle(replied.reply.text)
        return replied

    def _without(self, field: str) -> None:
        self._refused.add(field)
        self._heads.clear()
        self._prompt = Prompt()


def refused_field(error: ModelError, sent: list[bytes]) -> str:
    """A field of ours that the server says it does not know, if the request had it."""
    if error.failure is not Failure.REJECTED or not UNKNOWN.search(error.detail):
        return ""
    head = b"".join(sent[:2])
    named = (each for each in DISPENSABLE if re.search(rf"\b{each}\b", error.detail))
    return next((each for each in named if f'"{each}":'.encode() in head), "")


async def stream(answer: Answer, data: bytes, so_far: ReplySoFar, telling: Telling) -> None:
    """Read events until the stream says that it is done, or ends."""
    events = Events()
    while data:
        for event in events.feed(data):
            if not isinstance(event, Event) or not event.data:
                continue  # it says that the connection lives, not that a model does
            answer.is_alive()
            if event.data == DONE:
                telling.all(so_far.done())
                return await answer.end()
            chunk = json_in(event.data)
            if event.name == "error":
                raise failure_in(chunk)
            telling.all(so_far.feed(chunk))
            if (progress := progress_in(chunk)) is not None:
                telling.of(progress)
        # Some servers say why they stopped, and then leave the stream open.
        data = await (answer.soon() if so_far.has_reason else answer.read())
    unfinished = events.end()
    if unfinished is not None and unfinished.data.strip() == DONE:
        telling.all(so_far.done())
    elif unfinished is not None:
        raise ModelError(Failure.GARBLED, "the stream broke off in the middle of an event")


def progress_in(chunk: object) -> Reading | None:
    """How far llama.cpp has read the prompt."""
    progress = chunk.get("prompt_progress") if isinstance(chunk, dict) else None
    if not isinstance(progress, dict):
        return None
    done, of = number_in(progress.get("processed")), number_in(progress.get("total"))
    return Reading(int(done), int(of)) if done is not None and of else None


# --- messages and tools as this format has them ---------------------------------------------


def native(message: Message) -> Encoded:
    match message:
        case UserMessage(text) | Note(text):
            return shaped(USER, in_string(text))
        case ToolMessage(call_id, _, text):
            return shaped(
                WHOLE,
                f'{{"role":"tool","tool_call_id":{dumped(call_id)},"content":{dumped(text)}}}',
            )
        case AssistantMessage(text, ()):
            return shaped(ASSISTANT, in_string(text))
        case AssistantMessage(text, calls, owed):
            # An empty text, not a null: some servers refuse the one the standard has.
            written = ",".join(map(call, calls, extras(owed, len(calls))))
            return shaped(
                WHOLE,
                f'{{"role":"assistant","content":{dumped(text)},"tool_calls":[{written}]}}',
            )
        case _:
            assert_never(message)


def call(each: ToolCall, extra: object) -> str:
    name, arguments = dumped(outer_name(each.name)), dumped(each.arguments)
    sealed = f',"{EXTRA}":{dumped(extra)}' if extra else ""
    return (
        f'{{"id":{dumped(each.id)},"type":"function",'
        f'"function":{{"name":{name},"arguments":{arguments}}}{sealed}}}'
    )


def extras(owed: str, calls: int) -> list[object]:
    """What goes back with each call; nothing, if it was another API that sealed it."""
    try:
        sealed = parsed(owed, STRICT) if owed else None
    except ValueError:
        sealed = None
    given = sealed.get(EXTRA) if isinstance(sealed, dict) else None
    given = given if isinstance(given, list) else []
    return [*given, *[None] * calls][:calls]


def definition(tool: ToolSpec) -> str:
    return (
        f'{{"type":"function","function":{{"name":{dumped(outer_name(tool.name))},'
        f'"description":{dumped(tool.description)},"parameters":{parameters(tool)}}}}}'
    )


def spoken(dialect: Dialect, message: Message) -> Encoded:
    """The same for a model that knows no tools: calls and results are text."""
    match message:
        case UserMessage(text) | Note(text):
            return shaped(USER, in_string(text))
        case ToolMessage(_, tool, text):
            return shaped(USER, in_string(history_result(tool, text)))
        case AssistantMessage(text, calls):
            written = (history_text(each.name, each.arguments, dialect) for each in calls)
            return shaped(ASSISTANT, in_string("\n".join(filter(None, (text, *written)))))
        case _:
            assert_never(message)
