"""Ollama's own `/api/chat`.

Its OpenAI-compatible endpoint takes no window, and cuts a prompt that is too long without a word.
Here the window is asked for, and nothing may be cut: since 0.12.6 such a prompt is refused. Older
servers do not know the two fields and go on cutting, which people are told.

The client only translates: each line of a stream becomes a chunk as `chunks` reads it. How the
server says no is in `failures`, whether to try again in `fallback`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from time import time
from typing import assert_never

import anyio

from holdfast.core.effects import Request
from holdfast.core.events import Failure
from holdfast.core.jsontext import dumped
from holdfast.core.messages import (
    AssistantMessage,
    Message,
    Note,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.models.base import Count, ModelError, Replied, Tell
from holdfast.models.catalog import Prices
from holdfast.models.chat import ASSISTANT, USER, Prompt, definition, spoken
from holdfast.models.chunks import ReplySoFar
from holdfast.models.encoding import WHOLE, Encoded, Encoder, in_string, outer_name, shaped
from holdfast.models.failures import failure_of, json_in, number_in
from holdfast.models.reading import paid, understood
from holdfast.models.spoken import Dialect, instructions, schema
from holdfast.models.sse import LARGEST, TooLong
from holdfast.models.telling import Telling
from holdfast.models.wire import Answer, Waits, Wire

REFUSES_SINCE = (0, 12, 6)
"""The version that knows `truncate` and `shift`; those before ignore fields they do not know."""
GLANCE = 2
"""Seconds that a look at the server may hold up a reply which has already come."""
HINTS = (
    (re.compile(r"\bmodel .*not found"), "get it with: ollama pull {model}"),
    (re.compile("does not support tools"), "it can be told to write its calls in a dialect"),
    (re.compile("does not support thinking"), "leave `think` out"),
)
"""The way out of a refusal, where Ollama does not name it."""
NO_REPLY = ("load", "unload")
"""Reasons of an ending that say what became of the model, not why it stopped writing."""


class Ollama:
    """One model of one Ollama server."""

    def __init__(
        self,
        base: str,
        model: str,
        *,
        name: str = "",
        key: str = "",
        headers: Mapping[str, str] | None = None,
        options: Mapping[str, object] | None = None,
        speaks: Dialect | None = None,
        window: int | None = None,
        prices: Prices | None = None,
        streams: bool = True,
        keep_alive: str | float | None = None,
        think: bool | str | None = None,
        waits: Waits | None = None,
    ) -> None:
        """`base` ends where `/api` begins. `options` go into every request: a temperature, a seed.
        `window`: the tokens the model is to be loaded with; None leaves it to the server, and
        `loaded` tells what it chose. `speaks`: how a model without tools of its own is told to
        call them. `keep_alive`: how long it stays loaded."""
        self.name = name or model
        self.model = model
        self.window = window
        self._options = dict(options or {})
        if window is not None and self._options.setdefault("num_ctx", window) != window:
            raise ValueError(
                f"the window is {window} and options.num_ctx {self._options['num_ctx']}: "
                "they are the same thing, so give one of them"
            )
        self._speaks = speaks
        self._prices = prices
        self._streams = streams
        extra = {"keep_alive": keep_alive, "think": think}
        self._extra = {name: value for name, value in extra.items() if value is not None}
        authorization = {"Authorization": f"Bearer {key}"} if key else {}
        # Who has used another client before may have the address of another API at hand.
        base = base.rstrip("/").removesuffix("/v1").removesuffix("/api")
        self._wire = Wire(base, {**authorization, **(headers or {})}, waits)
        self._encoder = Encoder(partial(spoken, speaks) if speaks else native)
        self._prompt = Prompt()
        self._was_looked_at = False
        self._doubts: tuple[str, ...] = ()
        """What was found when the server was looked at, until a reply carries it to people."""

    async def reply(self, request: Request, tell: Tell, *, attempt: int = 0) -> Replied:
        replied = await self._ask(request, tell, attempt)
        if not self._was_looked_at:  # only now is the model surely loaded
            self._was_looked_at = True
            with anyio.move_on_after(GLANCE):
                await self._look()
        replied = paid(replied, self.window, self._prices)
        doubts, self._doubts = self._doubts, ()
        return replace(replied, notes=(*replied.notes, *doubts))

    async def count(self, request: Request) -> Count | None:
        """None: the server has no way to count without answering."""
        return None

    async def loaded(self) -> int | None:
        """The window that the model is loaded with; None if it is not loaded, or the server does
        not say (before 0.10.0)."""
        try:
            listed = await self._wire.get_json("/api/ps")
        except ModelError:
            return None
        models = listed.get("models") if isinstance(listed, dict) else None
        for each in models if isinstance(models, list) else ():
            if isinstance(each, dict) and whole_name(each.get("name")) == whole_name(self.model):
                window = number_in(each.get("context_length"))
                return int(window) if window else None
        return None

    async def aclose(self) -> None:
        self._encoder.forget()
        await self._wire.aclose()

    def body(self, request: Request, *, attempt: int = 0, streams: bool = False) -> bytes:
        """The request as it is sent."""
        options = {"num_predict": request.output, **self._options}
        if attempt:  # the same again would only fail the same way
            seed = self._options.get("seed")
            options["seed"] = attempt + (seed if isinstance(seed, int) else 0)
        fields = {"model": self.model, "stream": streams, "truncate": False, "shift": False}
        fields |= {**self._extra, "options": options}
        if self._prompt.of is not request.tools or self._prompt.system is not request.system:
            self._prompt = self._told(request)
        messages = self._encoder.messages(request, *self._prompt.first)
        head = dumped(fields)[:-1].encode()
        return b"".join((head, self._prompt.tools, b',"messages":[', *messages, b"]}"))

    def _told(self, request: Request) -> Prompt:
        system, tools, dialect = request.system, request.tools, self._speaks
        offered = ""
        if tools and dialect is None:
            offered = f',"tools":[{",".join(map(definition, tools))}]'
        elif tools and dialect:
            system = f"{system}\n\n{instructions(tools, dialect)}".strip()
            offered = f',"format":{dumped(schema(tools))}' if dialect is Dialect.JSON else ""
        first = shaped(WHOLE, f'{{"role":"system","content":{dumped(system)}}}')
        return Prompt(request.system, tools, offered.encode(), (first,) if system else ())

    async def _ask(self, request: Request, tell: Tell, attempt: int) -> Replied:
        so_far, telling = ReplySoFar(), Telling(tell, hides_calls=bool(request.tools))
        body = self.body(request, attempt=attempt, streams=self._streams)
        async with self._wire.post("/api/chat", body) as answer:
            if answer.status != 200:
                data = await answer.beginning()
                refusal = failure_of(answer.status, answer.headers, data, now=time())
                raise with_hint(refusal, self.model)
            data = await answer.read()
            if self._streams and not data.lstrip().startswith(b"<"):
                await stream(answer, data, so_far, telling)
            else:
                read(json_in(data + await answer.rest()), so_far, telling, count())
            whole = so_far.finish()
        replied = understood(whole, request.tools, spoken=self._speaks is not None)
        telling.settle(replied.reply.text)
        return replied

    async def _look(self) -> None:
        """Find out what people must know of the server."""
        if version := await self._old_version():
            self._doubts += (
                f"Ollama {version} cuts a prompt that is too long and does not say so; "
                f"{'.'.join(map(str, REFUSES_SINCE))} and later refuse it",
            )
        loaded = await self.loaded() if self.window is not None else None
        if loaded is not None and self.window is not None and loaded < self.window:
            self._doubts += (
                f"{self.name} was loaded with a window of {loaded} tokens, "
                f"although {self.window} were asked for",
            )
            self.window = loaded

    async def _old_version(self) -> str:
        """The version of a server that cuts prompts in silence; empty if it does not."""
        try:
            said = await self._wire.get_json("/api/version")
        except ModelError:
            return ""
        version = said.get("version") if isinstance(said, dict) else None
        numbers = re.match(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})", str(version))
        is_old = numbers is not None and tuple(map(int, numbers.groups())) < REFUSES_SINCE
        # 0.0.0 is what somebody built for themselves.
        return numbers[0] if numbers and is_old and numbers[0] != "0.0.0" else ""


def whole_name(model: object) -> str:
    """`qwen3` is short for `qwen3:latest`."""
    name = str(model).lower()
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def with_hint(error: ModelError, model: str) -> ModelError:
    """The refusal with its way out, where one is known."""
    if error.failure is not Failure.REJECTED:
        return error
    hints = (hint.format(model=model) for words, hint in HINTS if words.search(error.detail))
    detail = "; ".join((error.detail, *hints))
    return ModelError(error.failure, detail, retry_after=error.retry_after)


# --- what comes back ----------------------------------------------------------------------------


class Lines:
    """The lines in a stream of bytes, in whatever pieces it comes."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._begun, lines[0]))
            self._begun.clear()
            self._size = 0
        if rest:
            self._begun.append(rest)
            self._size += len(rest)
            if self._size > LARGEST:
                raise TooLong(LARGEST)
        return [line for line in lines if line.strip()]

    def end(self) -> bytes:
        """What stands after the last line end."""
        return b"".join(self._begun)


async def stream(answer: Answer, data: bytes, so_far: ReplySoFar, telling: Telling) -> None:
    """Read lines until one says that it is the last, or they end."""
    lines, places = Lines(), count()
    while data:
        for line in lines.feed(data):
            answer.is_alive()
            if read(json_in(line), so_far, telling, places):
                return await answer.end()
        data = await answer.read()
    if (last := lines.end().rstrip()).endswith(b"}"):  # else the stream broke off in it
        read(json_in(last), so_far, telling, places)


def read(line: object, so_far: ReplySoFar, telling: Telling, places: Iterator[int]) -> bool:
    """Take in a line; whether it was the last."""
    is_last = isinstance(line, dict) and line.get("done") is True
    if isinstance(line, dict) and is_last and line.get("done_reason") in NO_REPLY:
        what = f"the server only said that the model was to {line['done_reason']}"
        raise ModelError(Failure.GARBLED, what)
    for piece in so_far.feed(chunk_of(line, places)):
        telling.of(piece)
    if is_last:
        for piece in so_far.done():
            telling.of(piece)
    return is_last


def chunk_of(line: object, places: Iterator[int]) -> object:
    """A line as `chunks` reads it; what is none, or an error, stays what it is."""
    if not isinstance(line, dict) or line.get("error"):
        return line
    message = line.get("message")
    delta = dict(message) if isinstance(message, dict) else {}
    calls = delta.pop("tool_calls", None)
    if isinstance(calls, list):  # each is whole, so each has a place of its own
        delta["tool_calls"] = [
            {**each, "index": next(places)} for each in calls if isinstance(each, dict)
        ]
    choice: dict[str, object] = {"delta": delta}
    chunk: dict[str, object] = {"model": line.get("model"), "choices": [choice]}
    if line.get("done") is True:
        choice["finish_reason"] = line.get("done_reason") or "stop"  # long ago it said no more
        if "prompt_eval_count" in line:  # without it the other number would look like the whole
            chunk["usage"] = {
                "prompt_tokens": line["prompt_eval_count"],
                "completion_tokens": line.get("eval_count"),
            }
    return chunk


# --- messages as this format has them -----------------------------------------------------------


def native(message: Message) -> Encoded:
    match message:
        case UserMessage(text) | Note(text):
            return shaped(USER, in_string(text))
        case ToolMessage(call_id, tool, text):
            return shaped(
                WHOLE,
                f'{{"role":"tool","tool_name":{dumped(outer_name(tool))},'
                f'"tool_call_id":{dumped(call_id)},"content":{dumped(text)}}}',
            )
        case AssistantMessage(text, ()):
            return shaped(ASSISTANT, in_string(text))
        case AssistantMessage(text, calls):
            return shaped(
                WHOLE,
                f'{{"role":"assistant","content":{dumped(text)},'
                f'"tool_calls":[{",".join(map(call, calls))}]}}',
            )
        case _:
            assert_never(message)


def call(each: ToolCall) -> str:
    """The arguments are an object here, and a text of one is refused."""
    name = dumped(outer_name(each.name))
    return f'{{"id":{dumped(each.id)},"function":{{"name":{name},"arguments":{each.arguments}}}}}'
