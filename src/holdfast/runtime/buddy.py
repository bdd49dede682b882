"""The five events that the terminal agent buddy shows of a task, made of the events of a session.

Programs that read buddy's `AgentUiEvent`s can watch a run of ours: the names and the fields are
buddy's. Whatever buddy has no event for is left out; all of it is in `feed`.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TypeAlias

from holdfast.core.events import (
    EndDecided,
    Event,
    ModelFailed,
    ModelReplied,
    Nudged,
    TaskCut,
    ToolDropped,
    ToolFinished,
    Warned,
)
from holdfast.core.fold import evolve
from holdfast.core.limits import Spent
from holdfast.core.state import NEW, State
from holdfast.models.base import Piece, Thought
from holdfast.runtime.told import open_call, waiting


@dataclass(frozen=True, slots=True)
class WarningShown:
    task_id: int
    message: str


@dataclass(frozen=True, slots=True)
class TokenUsage:
    task_id: int
    prompt_tokens: int
    completion_tokens: int
    session_total: int


@dataclass(frozen=True, slots=True)
class ReasoningTrace:
    task_id: int
    field: str
    """What the server called it; `reasoning` where the log is all there is."""
    trace: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    task_id: int
    name: str
    args: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    task_id: int
    name: str
    args: str
    result: str
    """All of it."""


AgentUiEvent: TypeAlias = WarningShown | TokenUsage | ReasoningTrace | ToolCall | ToolResult

NAMES = {
    WarningShown: "Warning",
    TokenUsage: "TokenUsage",
    ReasoningTrace: "ReasoningTrace",
    ToolCall: "ToolCall",
    ToolResult: "ToolResult",
}


def encoded(event: AgentUiEvent) -> dict[str, object]:
    """As Rust writes an enum: the name of the variant, and its fields."""
    return {NAMES[type(event)]: asdict(event)}


class Buddy:
    """Translates the events of one session, in their order."""

    def __init__(self, task_id: int, state: State = NEW) -> None:
        self._task = task_id
        self._state = state
        self._total = 0
        self._field = "reasoning"

    def piece(self, piece: Piece) -> None:
        """Buddy shows no pieces; only the name of the reasoning is learned from them."""
        if isinstance(piece, Thought):
            self._field = piece.field

    def stored(self, event: Event) -> list[AgentUiEvent]:
        before, self._state = self._state, evolve(self._state, event)
        return [*self._used(before), *self._shown(event, before)]

    def _used(self, before: State) -> Iterator[AgentUiEvent]:
        """What the state says was spent, so that a server which does not say is estimated, and
        what a tool spent is counted."""
        spent = self._state.run.spent if self._state.run else Spent()
        same_run = before.runs == self._state.runs and before.run is not None
        had = before.run.spent if same_run and before.run else Spent()
        prompt, completion = spent.prompt - had.prompt, spent.completion - had.completion
        if prompt or completion:
            self._total += prompt + completion
            yield TokenUsage(self._task, prompt, completion, self._total)

    def _shown(self, event: Event, before: State) -> Iterator[AgentUiEvent]:
        match event:
            case ModelReplied(ask, reply):
                asked, run = waiting(before), self._state.run
                if asked is None or asked.ask != ask or run is None:
                    return
                if reply.reasoning:
                    yield ReasoningTrace(self._task, self._field, reply.reasoning)
                for call in (each.call for each in run.open):
                    yield ToolCall(self._task, call.name, call.arguments)
            case ToolFinished(call_id, _, text):
                if each := open_call(before, call_id):
                    yield ToolResult(self._task, each.call.name, each.call.arguments, text)
            case ModelFailed(_, failure, detail):
                yield self._warning(f"the model failed: {failure.value}: {detail}")
            case Warned(_, text) | Nudged(_, text):
                yield self._warning(text)
            case TaskCut(to):
                yield self._warning(f"the model is shown only {to} characters of the message")
            case ToolDropped(tool):
                yield self._warning(f"the tool {tool} only failed, and is gone for this run")
            case EndDecided(_, detail):
                yield self._warning(detail)
            case _:
                return

    def _warning(self, message: str) -> WarningShown:
        return WarningShown(self._task, message)
