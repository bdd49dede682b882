"""Which answer a request gets: the script's, or what a server of this kind says by itself.

Nothing here touches a socket: a request has been read, and an answer will be written.
"""

import json
from dataclasses import dataclass, field, replace
from itertools import takewhile

from holdfast.core.events import Reply
from holdfast.core.jsontext import is_too_deep
from holdfast.core.limits import Usage
from holdfast.testing.script import Says
from holdfast.testing.server.asked import Asked
from holdfast.testing.server.draft import Draft, cut, drafted
from holdfast.testing.server.http import Answer, Request
from holdfast.testing.server.judge import NOT_AN_OBJECT, complaints
from holdfast.testing.server.kinds import TRAITS, Kind, Stranger, document, refused, stream
from holdfast.testing.server.openai import OPENAI
from holdfast.testing.server.overflow import overflow
from holdfast.testing.server.probes import Self, probed
from holdfast.testing.server.record import Received
from holdfast.testing.server.refusals import (
    bad_history,
    loading,
    no_tools,
    unknown_model,
    wrong_key,
)
from holdfast.testing.server.routes import api_of
from holdfast.testing.server.tokens import pieces
from holdfast.testing.server.turns import Fault, Scene, Turn


@dataclass(kw_only=True)
class Answers:
    """The server's mind: its script, and what it remembers from one request to the next."""

    turns: list[Turn]
    then: Turn | None
    kind: Kind
    window: int
    model: str
    key: str | None
    tools: bool
    strict: bool
    refuse: bool
    mistake: Exception | None = None
    """What a function of the script raised first."""
    _played: int = 0
    _prompt: list[str] = field(default_factory=list)
    _loaded: int = 0
    """The window that the last request for a reply was given: Ollama loads its model anew."""

    def __post_init__(self) -> None:
        for turn in (*self.turns, *((self.then,) if self.then else ())):
            if not isinstance(turn, Says | Reply | Fault) and not callable(turn):
                raise TypeError(
                    "a script is made of says(), calls(), several(), faults and functions, "
                    f"not {turn!r}"
                )

    def received(self, request: Request) -> Received:
        """The request, counted and judged."""
        received = Received(
            request.method, request.path, request.headers, json_in(request.body), request.body
        )
        received.is_chat = api_of(self.kind, received) is not None
        if asked := self._asked(received):
            prompt = pieces((asked if self.tools else replace(asked, tools=())).prompt)
            received.tokens = len(prompt)
            received.cached = shared(prompt, self._prompt)
            self._prompt = prompt
        if received.is_chat and self.strict:
            window = asked.window if asked and asked.window else self.window
            found = complaints(self.kind, asked, received, window) if asked else (NOT_AN_OBJECT,)
            received.complaints = tuple(found)
        return received

    def answer(self, received: Received) -> Answer:
        if self.turns and isinstance(turn := self.turns[0], Fault) and turn.loading:
            self._next()
            return loading(self.kind)
        api = api_of(self.kind, received)
        if self.key is not None and self.key not in keys_in(received):
            return wrong_key(self.kind, api)
        if api is None:
            window = self._loaded or self.window
            return probed(Self(self.kind, self.model, window, self.tools), received)
        if self.refuse and received.complaints:
            return refused(self.kind, 400, received.complaints[0], api=api)
        asked = self._asked(received)
        if asked is None:
            return refused(self.kind, 400, NOT_AN_OBJECT, api=api)
        self._loaded = asked.window or self.window
        scene = Scene(self.kind, self._loaded, asked, received)
        return self._problem(scene) or self._reply(scene)

    def _asked(self, received: Received) -> Asked | None:
        api = api_of(self.kind, received)
        if api is None or not isinstance(received.body, dict):
            return None
        asked = api.read(received.body)
        cuts = TRAITS[self.kind].cuts_in_silence and api is OPENAI
        return replace(asked, truncates=True, shifts=True) if cuts else asked

    def _problem(self, scene: Scene) -> Answer | None:
        """What the server finds wrong by itself, before its model has a say."""
        traits, asked = TRAITS[self.kind], scene.asked
        if asked.model != self.model and traits.strangers is Stranger.REFUSED:
            return unknown_model(self.kind, asked)
        if traits.refuses_tools and asked.tools and not self.tools:
            return no_tools(self.kind, asked)
        if traits.reads_history and (problem := bad_history(self.kind, asked)):
            return problem
        return overflow(self.kind, asked, scene.received.tokens, scene.window)

    def _reply(self, scene: Scene) -> Answer:
        turn = self._next()
        if turn is None:
            words = f"The script of this server has ended: its {self._played - 1} turns are played."
            return refused(self.kind, 500, words, api=scene.asked.api)
        try:
            says, faults = resolved(turn, scene.received)
            draft = self._draft(says, scene)
            for fault in faults:
                draft = fault.spoil(draft, scene) if fault.spoil else draft
            answer = written(draft, scene)
            for fault in faults:
                answer = fault.garble(answer, scene) if fault.garble else answer
        except Exception as mistake:
            self.mistake = self.mistake or mistake
            words = f"A function of the script raised {mistake!r}."
            return refused(self.kind, 500, words, api=scene.asked.api)
        names = ", ".join(fault.name for fault in reversed(faults))
        return replace(answer, about=names or told(says.reply))

    def _next(self) -> Turn | None:
        """The turn that is due. A fault that meets several requests stays until it has."""
        self._played += 1
        if not self.turns:
            return self.then
        turn = self.turns.pop(0)
        if isinstance(turn, Fault) and turn.times > 1:
            self.turns.insert(0, replace(turn, times=turn.times - 1))
        return turn

    def _draft(self, says: Says, scene: Scene) -> Draft:
        """What an honest server of this kind writes: cut where there is no more room."""
        asked, received = scene.asked, scene.received
        traits = TRAITS[self.kind]
        is_echoed = traits.strangers is Stranger.ECHOED
        model = asked.model if is_echoed and asked.model else self.model
        draft = drafted(says.reply, number=self._played, model=model, style=traits.style)
        prompt = min(received.tokens, scene.window)
        room = [] if asked.shifts else [scene.window - prompt]
        room += [asked.room] if asked.room else []
        draft = cut(draft, min(room)) if room else draft
        usage = Usage(prompt=prompt, completion=draft.tokens, cached=min(received.cached, prompt))
        return replace(draft, usage=says.usage or usage)


def resolved(turn: Turn, received: Received) -> tuple[Says, list[Fault]]:
    """What is said, and the faults it is said with: the innermost first."""
    faults: list[Fault] = []
    while not isinstance(turn, Says | Reply):
        if isinstance(turn, Fault):
            faults.insert(0, turn)
            turn = turn.of
        else:
            turn = turn(received)
    return turn if isinstance(turn, Says) else Says(turn), faults


def written(draft: Draft, scene: Scene) -> Answer:
    api = scene.asked.api
    if not scene.asked.stream:
        return document(scene.kind, api.whole(draft), status=500 if draft.error else 200)
    if not scene.asked.wants_usage:
        draft = replace(draft, usage=None)
    return stream(scene.kind, api, tuple(api.pieces(draft)))


def told(reply: Reply) -> str:
    calls = ", ".join(f"{call.name}({call.arguments})" for call in reply.calls)
    return " and ".join(filter(None, (repr(reply.text) if reply.text else "", calls)))


def shared(prompt: list[str], before: list[str]) -> int:
    """How many tokens two prompts have in common, from the first on."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, before, strict=False))
    )


def keys_in(received: Received) -> tuple[str, str]:
    bearer = received.headers.get("authorization", "").removeprefix("Bearer ")
    return bearer, received.headers.get("x-api-key", "")


def json_in(raw: bytes) -> object:
    """None for what is no JSON, and for JSON so deep that walking through it is not safe."""
    try:
        text = raw.decode("utf-8", "replace")
        body: object = None if is_too_deep(text) else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return body
