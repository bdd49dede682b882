"""A session played from a script: what the model says, what the tools return.

    played = play("What time is it?", [calls("clock"), says("Noon.")], {"clock": "12:00"})
    played.told == ["user: What time is it?", "model: clock({})", ...]

It is a driver without a world: effects are performed at once and in order, time is a counter.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.core.effects import CallModel, Effect, Request, RunTools, StopWork
from holdfast.core.events import (
    CancelAsked,
    Event,
    Failure,
    Finish,
    FromTheWorld,
    ModelFailed,
    ModelReplied,
    Outcome,
    Reply,
    RunStopped,
    ToolFinished,
    ToolStarted,
    UserSpoke,
    WantedCall,
)
from holdfast.core.limits import Settings, Usage
from holdfast.core.machine import Step, recover, replay, step
from holdfast.core.messages import ToolCall
from holdfast.core.state import NEW, State
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.testing.told import told

Answer = str | Exception | Callable[[ToolCall], str]
"""What a tool returns. An exception makes the call fail with its words; so does a function that
raises `ToolFails`, while any other exception in a function is a mistake in the test."""


class ToolFails(Exception):
    """The tool of a script failed, and the model is told so."""


@dataclass(frozen=True)
class Says:
    """One thing a scripted model does when it is asked."""

    reply: Reply
    usage: Usage | None = None


@dataclass(frozen=True)
class Fails:
    failure: Failure
    detail: str = ""
    window: int | None = None
    tokens: int | None = None


def says(text: str, finish: Finish = Finish.STOP, usage: Usage | None = None) -> Says:
    return Says(Reply(text=text, finish=finish), usage)


def calls(name: str, /, **arguments: object) -> Says:
    """One call with these arguments."""
    return Says(Reply(calls=(wants(name, **arguments),)))


def wants(name: str, /, **arguments: object) -> WantedCall:
    return WantedCall(name, json.dumps(arguments), id="call_0")


def several(*wanted: WantedCall, text: str = "", finish: Finish = Finish.STOP) -> Says:
    """Several calls in one reply."""
    return Says(Reply(text=text, calls=wanted, finish=finish))


@dataclass
class Played:
    """A session so far. Everything that happens to it goes through the real machine."""

    script: list[Says | Fails]
    tools: Mapping[str, Answer]
    state: State = NEW
    events: list[Event] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    """Every request the model got, in order."""
    now: float = 0.0

    @property
    def told(self) -> list[str]:
        return told(self.events)

    @property
    def stopped(self) -> RunStopped:
        """How the last run ended."""
        stop = self.state.run.stopped if self.state.run else None
        assert stop is not None, "the run has not stopped"
        return stop

    def happens(self, event: FromTheWorld) -> "Played":
        """One event from the world, and all the work that comes of it."""
        waiting = self.advance(step(self.state, event))
        while waiting:
            waiting = [*waiting[1:], *self.perform(waiting[0])]
        return self

    def only(self, event: FromTheWorld) -> tuple[Effect, ...]:
        """One event from the world, and none of the work that comes of it."""
        return tuple(self.advance(step(self.state, event)))

    def killed(self, kept: int | None = None) -> "Played":
        """The process dies with `kept` events on disk, and another one takes over the log."""
        self.events = self.events[:kept]
        done = recover(replay(self.events))
        waiting = self.advance(done)
        while waiting:
            waiting = [*waiting[1:], *self.perform(waiting[0])]
        return self

    def advance(self, done: Step) -> list[Effect]:
        self.state = done.state
        self.events += done.events
        return list(done.effects)

    def perform(self, effect: Effect) -> list[Effect]:
        more: list[Effect] = []
        match effect:
            case CallModel(ask, _, request):
                self.requests.append(request)
                if self.script:
                    more += self.only(self.model(ask, self.script.pop(0)))
            case RunTools(wanted):
                for call in wanted:
                    more += self.only(ToolStarted(call.id, self.tick()))
                    more += self.only(self.run(call))
            case StopWork():
                pass
        return more

    def model(self, ask: int, does: Says | Fails) -> FromTheWorld:
        if isinstance(does, Says):
            return ModelReplied(ask, does.reply, self.tick(), does.usage)
        return ModelFailed(ask, does.failure, does.detail, self.tick(), does.window, does.tokens)

    def run(self, call: ToolCall) -> ToolFinished:
        answer = self.tools.get(call.name, f"{call.name} returned nothing")
        if isinstance(answer, Exception):
            return ToolFinished(call.id, Outcome.FAILED, str(answer), self.tick())
        try:
            text = answer if isinstance(answer, str) else answer(call)
        except ToolFails as failed:
            return ToolFinished(call.id, Outcome.FAILED, str(failed), self.tick())
        return ToolFinished(call.id, Outcome.DONE, text, self.tick())

    def cancel(self) -> "Played":
        return self.happens(CancelAsked(self.tick()))

    def user(self, text: str, settings: Settings | None = None) -> "Played":
        return self.happens(UserSpoke(text, self.tick(), settings))

    def tick(self) -> float:
        self.now += 1.0
        return self.now


def play(
    task: str,
    script: Iterable[Says | Fails],
    tools: Mapping[str, Answer] | None = None,
    settings: Settings | None = None,
) -> Played:
    """A run of this task; it stands still when the script ends before it does.

    Without settings the tools are read-only ones of these names, in the default window.
    """
    replies = list(script)
    if wrong := [each for each in replies if not isinstance(each, Says | Fails)]:
        raise TypeError(
            f"a script is made of says(), calls(), several() and Fails, not {wrong[0]!r}"
        )
    answers = tools or {}
    specs = tuple(ToolSpec(name=name, effect=SideEffect.READ, mutates=False) for name in answers)
    played = Played(replies, answers)
    return played.user(task, settings or Settings(system="You are an agent.", tools=specs))
