"""What the gateway needs from whoever runs it, and what passes between the two.

The runtime implements the `Door` for a session; `gateway` and `running` go through it and know
nothing else of logs, disks and people.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from holdfast.core.events import USER, FromTheWorld
from holdfast.core.messages import ToolCall
from holdfast.tools.base import Arguments, Context, Tool, Touch


class Scope(Enum):
    """For how long a yes counts."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked."""

    call: ToolCall
    tool: Tool
    touch: Touch
    why: str
    preview: str = ""
    suggestion: str = ""
    """The rule that a yes for the session, or for good, would make; empty if none would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    allowed: bool
    scope: Scope = Scope.ONCE
    words: str = ""
    """Why not; the model is told."""
    arguments: str = ""
    """What the person made of them, where they changed them; else empty."""
    by: str = USER


class Door(Protocol):
    """What the gateway needs from whoever runs it."""

    @property
    def granted(self) -> tuple[str, ...]:
        """Rules that the user's answers made in this session; looked at anew for every call."""

    def now(self) -> float: ...

    async def record(self, event: FromTheWorld, *, durable: bool = False) -> None:
        """Into the log and the machine; `durable` waits for the disk."""

    async def ask(self, question: Question) -> Answer: ...
    async def keep_blob(self, data: bytes) -> str: ...
    def spawn(self, work: Callable[[], Coroutine[object, object, None]]) -> object:
        """Begin work in a task that may outlive the run. It must not raise."""

    def context(self, call: ToolCall, tool: Tool) -> Context: ...


@dataclass(frozen=True, slots=True)
class Read:
    """A call whose arguments were read."""

    call: ToolCall
    tool: Tool
    arguments: Arguments
    touch: Touch
    barred: tuple[str, ...] = ()
    """Patterns of what it must not show, should it come upon it: see the module `barred`."""
