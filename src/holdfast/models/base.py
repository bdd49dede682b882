"""The one seam to whoever answers: a request goes in, pieces are told, and a reply comes out.

A reply is used whole or not at all: nothing of a broken stream is ever acted on. Whatever goes
wrong is a `ModelError` of one of five kinds, and any other exception out of a client is a bug.
"""

from collections.abc import Callable, Iterable
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
class Reading:
    """How far the server has read the prompt, where it says so."""

    done: int
    of: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing comes yet, and this is why: a model is loading, a server is asked again later."""

    why: str
    seconds: float
    """Until the next try."""
    model: str = ""
    """Who is asked then."""


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What was told of this reply so far is void: it broke off, and another is asked for."""

    why: str


Piece: TypeAlias = Said | Thought | Reading | Waiting | TakenBack
Tell: TypeAlias = Callable[[Piece], None]
"""Where the pieces go while a reply is on its way. It must not wait."""


@dataclass(frozen=True, slots=True)
class Replied:
    """A reply that came to its end."""

    reply: Reply
    usage: Usage | None = None
    """None: the server did not say."""
    model: str = ""
    """Who answered, in the server's words: some serve another model than the one asked for."""
    notes: tuple[str, ...] = ()
    """What had to be done to get it: mended, tried again, asked elsewhere. For people."""
    by: str = ""
    """The name of the fallback that answered in the place of the model asked for; else empty."""


@dataclass(frozen=True, slots=True)
class Count:
    """The tokens of a request, counted and not estimated."""

    tokens: int
    by: str
    """Who counted."""
    exact: bool = True
    """False: the texts were counted, and what a template puts around them was not."""


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
        loading: bool = False,
        problem: str = "",
        unexplained: bool = False,
    ) -> None:
        super().__init__(f"{failure.value}: {detail}")
        self.failure = failure
        self.detail = detail
        self.window = window
        self.tokens = tokens
        self.retry_after = retry_after
        self.loading = loading
        """The model is being loaded, and will answer when it is: patience, not a failed try."""
        self.problem = problem
        """What the model did wrong, in words for it, where that is why its reply was lost."""
        self.unexplained = unexplained
        """The stream ended without saying why: who asks for the whole reply may learn it."""

    def hide(self, secrets: Iterable[str]) -> None:
        """Take these out of its words: some servers repeat the key they refuse."""
        for secret in secrets:
            self.detail = self.detail.replace(secret, "[a key]")
        self.args = (f"{self.failure.value}: {self.detail}",)


class Model(Protocol):
    @property
    def name(self) -> str:
        """What people call it, and what its tokens are counted under."""

    async def reply(self, request: Request, tell: Tell, *, attempt: int = 0) -> Replied:
        """The whole reply, or a `ModelError`. Being cancelled closes the connection at once.

        `attempt` counts the tries before this one that failed: the same request is then sent
        with another seed, because the same again would only fail the same way.
        """

    async def count(self, request: Request) -> Count | None:
        """The tokens of a request; None where nobody can say."""

    async def aclose(self) -> None:
        """Give up connections, and whatever was kept to be quicker. A later request makes new
        ones."""
