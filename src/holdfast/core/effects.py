"""What must be done: work that the machine owes a run and a driver performs.

An effect is an order, not a fact: nothing is true of the session until its event comes back.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.core.events import Purpose
from holdfast.core.history import Entry
from holdfast.core.messages import Message, Note, ToolCall
from holdfast.core.tokens import size_of
from holdfast.core.tools import ToolSpec
from holdfast.core.trail import Trail


@dataclass(frozen=True, slots=True)
class Request:
    """Everything a model is sent. Parts are shared from one request to the next, so a client
    can encode each message once."""

    system: str
    tools: tuple[ToolSpec, ...]
    head: tuple[Entry, ...]
    """Digest and pinned messages; changes only when something is evicted."""
    body: Trail[Entry]
    """Grows at its end between evictions."""
    tail: tuple[Note, ...]
    """Instructions for this request alone."""
    output: int
    """Tokens the reply may take."""

    @classmethod
    def of(
        cls,
        *messages: Message,
        system: str = "",
        tools: tuple[ToolSpec, ...] = (),
        output: int = 1_000,
    ) -> "Request":
        """A request by hand; those of a run are made by `window`, from parts it already has."""
        body = Trail.of(Entry(message, size_of(message)) for message in messages)
        return cls(system, tools, (), body, (), output)

    @property
    def messages(self) -> Iterator[Message]:
        for entry in self.head:
            yield entry.message
        for entry in self.body:
            yield entry.message
        yield from self.tail


@dataclass(frozen=True, slots=True)
class CallModel:
    ask: int
    """Comes back in `ModelReplied` or `ModelFailed`."""
    purpose: Purpose
    request: Request


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls, each with all of its arguments; in any order, unless one mutates."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class StopWork:
    """Whatever is still running for this run is no longer wanted."""


Effect: TypeAlias = CallModel | RunTools | StopWork
