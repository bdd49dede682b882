"""The one seam to whoever answers: a request goes in, pieces come out, and at the end a reply.

A reply is used whole or not at all: nothing of a broken stream is ever acted on. Whatever goes
wrong is a `ModelError` of one of five kinds, and any other exception out of a client is a bug.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from holdfast.core.effects import Request
from holdfast.core.events import Failure, Reply
from holdfast.core.limits import Usage


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the answer, to be shown while the rest is on its way."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of the model's reasoning: for people, never an answer, never sent back."""

    text: str
    field: str = "reasoning"
    """What the server called it."""


@dataclass(frozen=True, slots=True)
class Replied:
    """The end of a stream that ended well. Exactly one, and last."""

    reply: Reply
    usage: Usage | None
    model: str = ""
    """Who answered, in the server's words: some serve another model than the one asked for."""
    repairs: tuple[str, ...] = ()
    """What had to be mended to read it, in words for people."""


Piece: TypeAlias = Said | Thought | Replied


class ModelError(Exception):
    """The world's mistake, translated at the door."""

    def __init__(
        self,
        failure: Failure,
        detail: str,
        *,
        window: int | None = None,
        tokens: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{failure.value}: {detail}")
        self.failure = failure
        self.detail = detail
        self.window = window
        self.tokens = tokens
        self.retry_after = retry_after


class Model(Protocol):
    @property
    def name(self) -> str: ...

    def reply(self, request: Request) -> AsyncIterator[Piece]: ...
