"""The tools that come with us, all together; and the small ones among them.

Files are the business of `files`, commands of `shell`, pages of `web`.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from holdfast.core.cut import middle_cut, seam
from holdfast.core.jsontext import json_object
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.tools.arguments import reader
from holdfast.tools.base import Access, Arguments, Context, Tool, ToolError, Touch
from holdfast.tools.files import PAGE, Reach, file_tools, text_of

if TYPE_CHECKING:
    from holdfast.tools.sandbox import Sandbox

log = logging.getLogger("holdfast")

Confined: TypeAlias = Literal["read-only", "workspace-write", "off"]
"""How commands are held: they may write nothing but their temporary files; in the workspace too;
not at all."""

LINES_FOUND = 20
LINE_SHOWN = 200
TOOLS_FOUND = 8
TOLD = 160
"""Characters of a tool's description in a list of them; its definition has all of it."""

TIME = ToolSpec(
    name="current_time",
    description="The date and time now.",
    parameters="""{"type":"object","properties":{"zone":{"type":"string",\
"description":"such as Europe/Berlin; default: the user's"}},"additionalProperties":false}""",
    effect=SideEffect.READ,
    mutates=False,
    polls=True,
    aliases=("time", "now", "get_time", "get_current_time", "current_date", "date"),
)
READ_RESULT = ToolSpec(
    name="read_result",
    description=(
        "Read on in an earlier result that was cut, from character `offset` on; "
        "or find the lines in it that contain a text."
    ),
    parameters="""{"type":"object","properties":{"call_id":{"type":"string"},\
"offset":{"type":"integer","minimum":0},"limit":{"type":"integer","minimum":1,\
"description":"number of characters"},"contains":{"type":"string"}},\
"required":["call_id"],"additionalProperties":false}""",
    effect=SideEffect.READ,
    mutates=False,
)
FIND_TOOLS = ToolSpec(
    name="find_tools",
    description="Find more tools by what they should do. Those found can be called from then on.",
    parameters="""{"type":"object","properties":{"query":{"type":"string"}},\
"required":["query"],"additionalProperties":false}""",
    effect=SideEffect.READ,
    mutates=False,
    aliases=("search_tools", "tool_search"),
)


def builtin_tools(
    *,
    reach: Reach | None = None,
    search: Callable[[str], Sequence[ToolSpec]] | None = None,
    sandbox: Confined = "workspace-write",
    network: bool = False,
    writable: tuple[Path, ...] = (),
    secrets: frozenset[str] = frozenset(),
    unconfined: bool = False,
    names: tuple[str, ...] | None = None,
    tell: Callable[[str], None] = log.warning,
    now: Callable[[], float] = time.time,
) -> tuple[Tool, ...]:
    """Tools for files, commands, pages, the time and earlier results; and one that finds others,
    with `search`. `names` are those that are wanted; None: all.

    Commands run in the sandbox of this machine: `network` lets them connect, `writable` are folders
    beside the workspace, `secrets` variables that they get though these look like keys. Where no
    sandbox can hold that, `run_shell` is left out, and `tell` hears why; with `unconfined` it is
    there all the same, held by nothing, and a person is asked for every call.
    """
    # Not at the top: whoever wants only the small tools need not load these.
    from holdfast.tools.sandbox import found
    from holdfast.tools.web import fetch_url_tool

    tools = (
        *file_tools(reach),
        current_time_tool(now),
        read_result_tool(),
        *((find_tools_tool(search),) if search else ()),
        fetch_url_tool(),
    )
    if names is None or "run_shell" in names:
        tools += shell_tools(
            found(),
            sandbox=sandbox,
            network=network,
            writable=writable,
            secrets=secrets,
            unconfined=unconfined,
            tell=tell,
        )
    return tools if names is None else picked(tools, names)


def picked(tools: tuple[Tool, ...], names: tuple[str, ...]) -> tuple[Tool, ...]:
    """Those of these names. Two of ours may be missing here, and are no mistake for that."""
    there = (tool.name for tool in tools)
    known = list(dict.fromkeys((*there, FIND_TOOLS.name, "run_shell")))
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(known)}."
            raise ValueError(f"no tool of ours is named '{name}'; {hint}")
    return tuple(tool for tool in tools if tool.name in names)


def shell_tools(
    box: "Sandbox",
    *,
    sandbox: Confined,
    network: bool,
    writable: tuple[Path, ...],
    secrets: frozenset[str],
    unconfined: bool,
    tell: Callable[[str], None],
) -> tuple[Tool, ...]:
    """`run_shell`, held as it should be; or none, and why is told."""
    from holdfast.tools.sandbox import NoSandbox
    from holdfast.tools.shell import run_shell_tool

    try:
        if sandbox == "off":
            return (run_shell_tool(sandbox=None, secrets=secrets),)
        held = run_shell_tool(
            sandbox=box,
            network=network,
            write=writable,
            read_only=sandbox == "read-only",
            secrets=secrets,
        )
    except NoSandbox as why:
        if os.name != "posix":
            tell(f"run_shell is left out. {why}")
            return ()
        if not unconfined:
            tell(f"run_shell is left out. {why} To have it, allow it to run unconfined.")
            return ()
        tell(f"{why} run_shell is held by nothing here, and asks for every command.")
        return (replace(run_shell_tool(sandbox=None, secrets=secrets), approve=True),)
    return (held,)


def touches_nothing(arguments: Arguments, root: Path) -> Touch:
    return Touch(Access.NONE)


# --- the time -------------------------------------------------------------------------------


def current_time_tool(now: Callable[[], float] = time.time) -> Tool:
    async def run(arguments: Arguments, context: Context) -> str:
        name = text_of(arguments, "zone").strip()
        zone = zone_of(name) if name else None
        at = datetime.fromtimestamp(now(), UTC).astimezone(zone)
        return f"{at:%A} {at.isoformat(sep=' ', timespec='seconds')} ({name or at.tzname()})"

    return Tool(spec=TIME, parse=reader(TIME.parameters), touch=touches_nothing, run=run)


def zone_of(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, available_timezones

    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    known = {zone.casefold(): zone for zone in available_timezones()}
    wanted = name.replace(" ", "_").casefold()
    if wanted in known:
        return ZoneInfo(known[wanted])
    cities = {zone.rpartition("/")[2]: zone for zone in known}
    close = [*get_close_matches(wanted, known, n=3), *get_close_matches(wanted, cities, n=3)]
    names = ", ".join(dict.fromkeys(known[cities.get(one, one)] for one in close))
    hint = f" Did you mean: {names}?" if names else " Give one such as Europe/Berlin, or UTC."
    raise ToolError(f"There is no time zone named '{middle_cut(name, 60)}'.{hint}")


# --- earlier results ------------------------------------------------------------------------


def read_result_tool(*, page: int = PAGE) -> Tool:
    async def run(arguments: Arguments, context: Context) -> str:
        call_id, contains = text_of(arguments, "call_id"), text_of(arguments, "contains")
        text = await context.result(call_id)
        if text is None:
            raise ToolError(
                f"There is no result of a call '{middle_cut(call_id, 60)}' in this session. "
                "The note where a result was cut names its call_id."
            )
        offset, limit = arguments.get("offset"), arguments.get("limit")
        start = offset if isinstance(offset, int) else 0
        if contains:
            return lines_with(text, contains, start)
        return part(text, start, min(limit, page) if isinstance(limit, int) else page)

    return Tool(
        spec=READ_RESULT, parse=reader(READ_RESULT.parameters), touch=touches_nothing, run=run
    )


def part(text: str, offset: int, limit: int) -> str:
    """So many characters from a place on, cut where nothing is parted."""
    if not text:
        return "[the result is empty]"
    if offset >= len(text):
        raise ToolError(f"The result has {len(text)} chars; offset {offset} is past its end.")
    start = seam(text, offset)
    end = min(len(text), start + limit)
    # Where the seam would lie before the start, one character that is drawn as one goes over.
    end = next(at for at in (seam(text, end), seam(text, end, step=1), end + 1) if at > start)
    more = f"offset={end} reads on" if end < len(text) else "this is the end"
    return f"{text[start:end]}\n[chars {start}-{end} of {len(text)}; {more}]"


def lines_with(text: str, contains: str, offset: int) -> str:
    """The lines that contain a text, whatever its case, each with the offset where it begins."""
    found = list(occurrences(text, contains, offset))
    if not found:
        return f"[no line from offset {offset} on contains '{middle_cut(contains, 60)}']"
    lines = [f"offset {start}: {middle_cut(line, LINE_SHOWN)}" for start, line in found]
    if len(lines) > LINES_FOUND:
        lines[LINES_FOUND:] = [f"[there are more: offset={found[LINES_FOUND][0]} searches on]"]
    return "\n".join(lines)


def occurrences(text: str, contains: str, offset: int) -> Iterator[tuple[int, str]]:
    """One more than are shown, at most."""
    expression = re.compile(re.escape(contains), re.IGNORECASE)
    at = offset
    for _ in range(LINES_FOUND + 1):
        match = expression.search(text, at)
        if match is None:
            return
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        yield start, text[start:end]
        at = end + 1


# --- more tools -----------------------------------------------------------------------------


def find_tools_tool(search: Callable[[str], Sequence[ToolSpec]]) -> Tool:
    async def run(arguments: Arguments, context: Context) -> str:
        query = text_of(arguments, "query")
        found = tuple(search(query))[:TOOLS_FOUND]
        if not found:
            return (
                f"[no tool fits '{middle_cut(query, 80)}'; try other words for what it should do]"
            )
        await context.found(tuple(one.name for one in found))
        return "\n".join(described(one) for one in found)

    return Tool(
        spec=FIND_TOOLS, parse=reader(FIND_TOOLS.parameters), touch=touches_nothing, run=run
    )


def described(spec: ToolSpec) -> str:
    """`name(path, offset?): what it does`, on one line."""
    schema = json_object(spec.parameters)
    properties, required = schema.get("properties"), schema.get("required")
    names = list(properties) if isinstance(properties, dict) else []
    needed = required if isinstance(required, list) else []
    given = ", ".join(name if name in needed else f"{name}?" for name in names)
    words = middle_cut(" ".join(spec.description.split()), TOLD)
    return f"{spec.name}({given}): {words}" if words else f"{spec.name}({given})"
