"""What the model may ask for: the specifications of tools, and finding one by name.

Running a tool is not here; a specification is only what the loop must know to decide.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from holdfast.core.jsontext import json_object

ALMOST = 0.9
"""How like a name must be to count as a slip of the pen: one letter in ten."""


class SideEffect(Enum):
    """What may happen again after a crash."""

    READ = "read"
    """Run again: it changes nothing."""
    IDEMPOTENT = "idempotent"
    """Run again with the same key: the second time changes nothing."""
    UNSAFE = "unsafe"
    """Never run again: the model is told that the outcome is unknown."""


class Keep(Enum):
    """Which part of a result survives its cap."""

    HEAD = "head"
    TAIL = "tail"
    ENDS = "ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    name: str
    description: str = ""
    parameters: str = "{}"
    """The JSON schema of the arguments, as text: it is sent, measured and compared as it is."""
    effect: SideEffect = SideEffect.UNSAFE
    mutates: bool = True
    """It may change what other tools return, so their repeats are no longer repeats."""
    polls: bool = False
    """Asking again is its purpose: the guard against repeats leaves it alone."""
    cap: int | None = None
    """Characters of a result the model may see; None takes the cap of the run."""
    keep: Keep = Keep.HEAD
    keep_last: int | None = None
    """Only so many of its newest results stay whole in the window; None means all that fit."""
    aliases: tuple[str, ...] = ()
    """Other names that models use for it. They are not sent."""

    def __post_init__(self) -> None:
        try:
            json_object(self.parameters)
        except ValueError as wrong:
            raise ValueError(
                f"the parameters of the tool {self.name} are no JSON object: {wrong}"
            ) from None


def resolve(name: str, tools: Iterable[ToolSpec]) -> ToolSpec | None:
    """The tool that is meant: by its name, without its server's prefix, by an alias, or by a slip
    of the pen, if running the wrong one would harm nobody. None rather than one of two.

    A name with another prefix is another tool: `mail.send` must never run `chat.send`.
    """
    known = tuple(tools)
    bare = name.strip().removeprefix("functions.")  # how some models write every name
    for tool in known:
        if tool.name == name:
            return tool
    for tool in known:
        if dotted(tool.name) == dotted(bare):
            return tool
    alike = [tool for tool in known if dotted(tool.name).rsplit(".", 1)[-1] == bare]
    alike = alike or [tool for tool in known if bare in tool.aliases]
    alike = alike or [tool for tool in known if is_slip(bare, tool)]
    return alike[0] if len(alike) == 1 else None


def is_slip(name: str, tool: ToolSpec) -> bool:
    """`read_fille`, or `ReadFile`, of a tool that changes nothing."""
    if tool.mutates or tool.effect is not SideEffect.READ:
        return False
    meant, written = plain(tool.name), plain(name)
    return meant == written or bool(get_close_matches(written, [meant], cutoff=ALMOST))


def plain(name: str) -> str:
    return dotted(name).replace("_", "").replace("-", "").lower()


def dotted(name: str) -> str:
    """Servers' prefixes are written in several ways: `files.read` and `files__read` are one."""
    return name.replace("__", ".")


def not_found(name: str, tools: Iterable[ToolSpec]) -> str:
    """The sentence for a model that asked for a tool which is not there."""
    names = [tool.name for tool in tools]
    close = get_close_matches(name, names, n=3, cutoff=0.55)
    if close:
        return f"There is no tool named '{name}'. Did you mean: {', '.join(close)}?"
    if names:
        return f"There is no tool named '{name}'. Some that exist: {', '.join(names[:12])}."
    return f"There is no tool named '{name}', and no tools are available now."
