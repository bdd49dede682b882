"""The tools that a server lists, made into ours.

What a server says about its tools counts only if it is trusted: otherwise each of them may do
anything, and nothing is run again.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from holdfast.core.cut import cut
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.tools.arguments import reader
from holdfast.tools.base import Access, Arguments, Context, Output, Tool, Touch
from holdfast.tools.mcp.config import Server
from holdfast.tools.mcp.names import names
from holdfast.tools.mcp.schema import is_modest, parameters

if TYPE_CHECKING:
    from mcp import types

DESCRIPTION = 2_000
"""Characters of a description: whole ones of reference servers have up to 4,800, in every
request."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call of a tool, by the name the server knows."""

    tool: str
    arguments: Arguments
    promised: dict[str, object] | None
    """The schema of what it returns, where the server has given one that can be used."""


Call: TypeAlias = Callable[[Wanted, Context], Awaitable[Output]]


def tools(
    server: Server, prefix: str, listed: Iterable["types.Tool"], call: Call
) -> tuple[tuple[Tool, ...], list[str]]:
    """The listed tools that may be offered, and what people should know about the others. The
    first of two with one name counts."""
    known: dict[str, types.Tool] = {}
    for tool in listed:
        known.setdefault(tool.name, tool)
    wanted = known if server.tools is None else [name for name in server.tools if name in known]
    named = names(prefix, known)  # of all: a name is the same whatever else is offered
    notes = [absent(name, known) for name in server.tools or () if name not in known]
    found = []
    for name in wanted:
        try:
            found.append(made(server, named[name], known[name], call))
        except ValueError as wrong:
            notes.append(f"Its tool {name} is left out, since its parameters are {wrong}.")
    return tuple(found), notes


def absent(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    meant = f"; did you mean {close[0]}?" if close else "."
    return f"It has no tool {name}, which the configuration asks for{meant}"


def made(server: Server, name: str, tool: "types.Tool", call: Call) -> Tool:
    schema = parameters(tool.input_schema)
    hints = Hints.of(tool) if server.trust else Hints()
    promised = tool.output_schema
    if promised is not None and not is_modest(promised):
        promised = None  # what comes is shown all the same, unchecked

    async def run(arguments: Arguments, context: Context) -> Output:
        return await call(Wanted(tool.name, arguments, promised), context)

    def touch(arguments: Arguments, _: Path) -> Touch:
        return Touch(hints.access, tuple(texts_in(arguments)) or (name,))

    return Tool(
        spec=ToolSpec(
            name=name,
            description=described(server, tool),
            parameters=schema,
            effect=hints.effect,
            mutates=hints.mutates,
            aliases=() if name.endswith(f"__{tool.name}") else (tool.name,),
        ),
        parse=reader(schema),
        touch=touch,
        run=run,
        timeout=server.timeout,
        source=server.name,
    )


@dataclass(frozen=True, slots=True)
class Hints:
    """What is known of a tool; without trust, the worst."""

    effect: SideEffect = SideEffect.UNSAFE
    mutates: bool = True
    access: Access = Access.EXECUTE

    @classmethod
    def of(cls, tool: "types.Tool") -> "Hints":
        said = tool.annotations
        if said is None:
            return cls()
        if said.read_only_hint:
            # A server that says nothing of it means the open world: so the protocol has it.
            far = Access.READ if said.open_world_hint is False else Access.NETWORK
            return cls(SideEffect.READ, mutates=False, access=far)
        return cls(SideEffect.IDEMPOTENT) if said.idempotent_hint else cls()


def described(server: Server, tool: "types.Tool") -> str:
    return server.veil(cut((tool.description or tool.title or "").strip(), DESCRIPTION))


def texts_in(value: object) -> Iterator[str]:
    """Every text in the arguments: which of them is a path or a command, only the server knows."""
    match value:
        case str():
            yield value
        case Mapping():
            for one in value.values():
                yield from texts_in(one)
        case list() | tuple():
            for one in value:
                yield from texts_in(one)
