"""What can be done: one shape for every tool, whoever wrote it and wherever it runs.

A tool is its specification, which the loop and the model know, and three functions: one reads the
arguments, one says what they would touch, one does it. `function` makes tools of Python functions,
`mcp` of servers, `builtin` has our own; all of them are run by `gateway`, and by nothing else.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol, TypeAlias

from holdfast.core.limits import Usage
from holdfast.core.tools import ToolSpec


class Access(Enum):
    """What a call needs permission for, in the order of how much it could harm."""

    NONE = "none"
    """Nothing outside the run: the time, an earlier result."""
    READ = "read"
    """Looks at files of the workspace."""
    EDIT = "edit"
    """Changes files of the workspace, in a way that can be taken back."""
    NETWORK = "network"
    EXECUTE = "execute"
    """Runs a command, or something else of which nobody can say beforehand what it does."""


@dataclass(frozen=True, slots=True)
class Touch:
    """What one call would do, for the rules and for the person who is asked."""

    access: Access
    subjects: tuple[str, ...] = ()
    """What the pattern of a rule is held against: paths, commands, addresses. All of them must
    be allowed; one that is denied is enough."""
    danger: str = ""
    """Why a person must be asked whatever the mode and the rules allow: it leaves the workspace,
    it destroys what cannot be restored. Empty: nothing of that kind."""


Arguments: TypeAlias = Mapping[str, object]
"""Arguments of a call, read and checked."""


class BadArguments(ValueError):
    """Arguments that a tool cannot take, in words with which the model can put them right."""


class ToolError(Exception):
    """A tool could not do it, and this is why, in words for the model. Anything else that a tool
    raises counts as a failure too, but is reported as what it is: an unexpected one."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a tool has come; for people, while it runs."""

    text: str
    done: float | None = None
    of: float | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes in a result, such as an image. The model is told of it; people can see it."""

    data: bytes
    media: str = "application/octet-stream"
    name: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """A result in several parts. Whatever else a tool returns is made into one of these."""

    text: str
    binaries: tuple[Binary, ...] = ()
    failed: bool = False
    """The tool ran and says itself that it failed; the text says why."""


@dataclass(frozen=True, slots=True)
class Left:
    """What the run may still spend, for tools that spend on its behalf."""

    rounds: int
    calls: int
    tokens: int
    cost: int
    """Millionths of a dollar."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Form:
    """Something a tool or its server wants to know from the person."""

    message: str
    schema: str = "{}"
    """The JSON schema of what is asked for: an object with plain fields."""
    url: str = ""
    """Where the person is asked to go instead; else empty."""
    call_id: str = ""
    """The call for which it is asked: the answer names it."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The person's answer to a form: accepted, with values, or not."""

    accepted: bool
    values: Mapping[str, object] = field(default_factory=dict)
    cancelled: bool = False
    """Neither yes nor no: nobody was there, or they went away."""


class Context(Protocol):
    """What a running tool can see of its run, and ask of it."""

    @property
    def session(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def key(self) -> str:
        """The same whenever this call is run again after a crash, and different for any other:
        hand it to services that take an idempotency key."""

    @property
    def workspace(self) -> Path:
        """The folder the run works in."""

    @property
    def left(self) -> Left: ...

    def tell(self, progress: Progress) -> None:
        """Show it to whoever watches. Never waits; may be called from any thread."""

    async def keep(self, path: Path) -> None:
        """Before changing a file: keep what is in it, on disk, so that it can be restored."""

    async def result(self, call_id: str) -> str | None:
        """The whole text of an earlier result of this session."""

    async def found(self, names: tuple[str, ...]) -> None:
        """These tools, which were left out of the definitions, are wanted from now on."""

    async def ask(self, form: Form) -> Filled: ...

    async def charge(self, usage: Usage) -> None:
        """What this call spent on a model: it counts as the run's."""


Run: TypeAlias = Callable[[Arguments, Context], Awaitable[object] | AsyncIterator[object]]
"""Does it. A result may be text, anything JSON can hold, bytes, `Binary`, `Output`, a dataclass or
a pydantic model; an async iterator yields `Progress` and then, last, one of these."""


Probe: TypeAlias = Callable[[Arguments, Context], Awaitable[object | None]]
"""Looks whether a call did take effect, and changes nothing: its result if it did, None if nobody
can say. The context has the key under which it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    spec: ToolSpec
    parse: Callable[[str], Arguments]
    """From the text of a JSON object; `BadArguments` if they are not what the tool takes."""
    touch: Callable[[Arguments, Path], Touch]
    """What a call with these arguments would do in this workspace. Looks; changes nothing."""
    run: Run
    timeout: float | None = None
    """Seconds; None takes that of the gateway."""
    approve: bool | None = None
    """True: a person is asked for every call. False: never, unless a rule or a danger says so.
    None: the mode decides."""
    preview: Callable[[Arguments, Path], Awaitable[str]] | None = None
    """What a person who is asked is shown beside the arguments: a diff."""
    probe: Probe | None = None
    """For an unsafe tool, where a crash left the outcome of a call unknown."""
    source: str = ""
    """The server it comes from; empty for one of this process."""

    @property
    def name(self) -> str:
        return self.spec.name
