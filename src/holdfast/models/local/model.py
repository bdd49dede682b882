"""`local/…` as a model like any other: its engine is started when it is first asked.

What is said to it is `chat`'s business. Models this small write calls that cannot be read, so their
server holds them to a schema: every reply is a call of a tool that exists, or an answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import anyio

from holdfast.core.effects import Request
from holdfast.core.events import Failure
from holdfast.core.messages import AssistantMessage, Message, ToolMessage
from holdfast.models.base import Count, ModelError, Replied, Tell
from holdfast.models.catalog import Rules, WindowFrom, lookup
from holdfast.models.chat import Chat
from holdfast.models.discovery import look
from holdfast.models.local.engine import WINDOW, Engine, check_engine
from holdfast.models.local.weights import PACKAGED, about, weights
from holdfast.models.names import BadName, Opened
from holdfast.models.spoken import Dialect, instructions, schema
from holdfast.models.wire import Waits

FIELDS: Mapping[str, object] = {"temperature": 0.2}
"""Low, since a small model's second choice is seldom the better one; not zero, since a reply that
failed is asked for again, and would come back the same."""
ANSWER: Mapping[str, object] = {
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": schema(())},
    }
}


async def opened_local(
    name: str,
    rules: Rules,
    *,
    window: int | None = None,
    fields: Mapping[str, object] | None = None,
    waits: Waits | None = None,
) -> Opened:
    """The model behind `local/`. What is missing is said now; the loading waits for the first
    request."""
    try:
        path = weights(name)
        check_engine()
    except ModelError as wrong:
        raise BadName(f"'local/{name}' cannot be used: {wrong.detail}.") from wrong
    known = lookup(path.stem, rules, settings=window)
    if window is None:  # it is loaded with what we ask for, so this is no guess
        known = replace(known, window=min(WINDOW, known.window), window_from=WindowFrom.SERVER)
    model = Local(name, window=known.window, fields=fields, waits=waits)
    return Opened(
        model=model,
        known=replace(known, dialect=Dialect.JSON),
        warnings=(f"{model.about}.",) if name.lower() in PACKAGED else (),
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """An engine at work, and the ways to ask it."""

    engine: Engine
    chat: Chat
    answers: Chat
    """The same, for requests without tools behind a call: the model would only call again."""

    def asked(self, request: Request) -> Chat:
        return (
            self.answers if not request.tools and any(map(calls, request.messages)) else self.chat
        )

    async def aclose(self) -> None:
        await self.chat.aclose()
        await self.answers.aclose()
        await self.engine.aclose()


def calls(message: Message) -> bool:
    return isinstance(message, AssistantMessage) and bool(message.calls)


class Local:
    """A GGUF file, run by an engine of our own. One reply at a time: others wait their turn."""

    def __init__(
        self,
        name: str,
        *,
        window: int = WINDOW,
        threads: int | None = None,
        fields: Mapping[str, object] | None = None,
        waits: Waits | None = None,
        speaks: Dialect | None = Dialect.JSON,
        calls_once: bool | None = None,
    ) -> None:
        """`name`: what stands behind `local/`. `threads`: half of the cores, if not given.
        `speaks`: None offers the tools as the model's own template has them. `calls_once`: ask for
        the answer as soon as there is a result; if not given, for models known to need that."""
        self.name = f"local/{name}"
        self.about = about(name)
        self.window = window
        self._weights = name
        self._threads = threads
        self._fields = {**FIELDS, **(fields or {})}
        self._waits = waits
        self._speaks = speaks
        packaged = PACKAGED.get(name.lower())
        self._calls_once = (
            bool(packaged and packaged.calls_once) if calls_once is None else calls_once
        )
        self._starting = anyio.Lock()
        self._loaded: Loaded | None = None

    @property
    def pid(self) -> int | None:
        """The process of the engine, once it was started."""
        return self._loaded.engine.pid if self._loaded else None

    async def reply(self, request: Request, tell: Tell, *, attempt: int = 0) -> Replied:
        loaded = await self._started(tell)
        request = self._offered(request)
        try:
            return await loaded.asked(request).reply(request, tell, attempt=attempt)
        except ModelError as error:
            if error.failure is Failure.GONE and (why := await loaded.engine.soon_ended()):
                raise ModelError(Failure.GONE, why) from error
            raise

    async def count(self, request: Request) -> Count | None:
        """None before the first reply: to load the model is worth more words than this may say."""
        request = self._offered(request)
        return await self._loaded.asked(request).count(request) if self._loaded else None

    async def aclose(self) -> None:
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await loaded.aclose()

    def _offered(self, request: Request) -> Request:
        """The request, or if it is time for the answer, the same without tools."""
        last = request.body[-1].message if self._calls_once and len(request.body) else None
        if not isinstance(last, ToolMessage) or last.failed or not request.tools:
            return request
        # The system prompt stays as it was: the engine need not read it again, and the model knows
        # what an answer is. Without, 13 answers of 48 were right; with it, 22.
        taught = instructions(request.tools, self._speaks) if self._speaks else ""
        return replace(request, tools=(), system=f"{request.system}\n\n{taught}".strip())

    async def _started(self, tell: Tell) -> Loaded:
        """An engine at work: the one there is, or another if it died."""
        async with self._starting:
            if self._loaded and not self._loaded.engine.ended():
                return self._loaded
            await self.aclose()
            path = weights(self._weights)
            engine = Engine(path, window=self.window, threads=self._threads)
            running = await engine.start(tell, self.about)
            offered = (await look(running.url, key=running.key)).model
            if offered and offered.window:
                self.window = offered.window  # a model trained for less gets no more
            chat = partial(
                Chat,
                f"{running.url}/v1",
                path.name,
                name=self.name,
                key=running.key,
                speaks=self._speaks,
                window=self.window,
                waits=self._waits,
            )
            answers = {**self._fields, **(ANSWER if self._speaks is Dialect.JSON else {})}
            self._loaded = Loaded(engine, chat(fields=self._fields), chat(fields=answers))
            return self._loaded
