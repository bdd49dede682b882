"""Finding files by name and lines by content, within bounds of time.

An easy pattern is searched for in a thread. A hard one gets a process of its own, which is ended
when its time is up: a regular expression cannot be stopped otherwise, and would hold everything.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.tools.barred import barred
from holdfast.tools.base import ToolError
from holdfast.tools.seeking import SECONDS, Wanted, request, seek
from holdfast.tools.threads import in_thread
from holdfast.tools.workspace import Place, folder_at

GRACE = 4.0
"""Seconds that a process gets beyond those of its search, to start and to end by itself."""
CHILD = "from holdfast.tools.seeking import main; main()"
NOT_RUN = "The search for this regex could not be run. Try plain text."
REPEATS = re.compile(r"(?<!\\)[*+?{]")
SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")

SEARCH = ToolSpec(
    name="search_files",
    description=(
        "Find files by name (`pattern`: *.py, src/**/*.md, or a part of the name) and lines by "
        "content (`contains`: text or regex). Returns paths, or path:line: text."
    ),
    parameters="""{"type":"object","properties":{"pattern":{"type":"string"},\
"contains":{"type":"string"},"path":{"type":"string","description":"folder to search"}},\
"additionalProperties":false}""",
    effect=SideEffect.READ,
    mutates=False,
    aliases=("find_files", "glob", "file_search"),
)


async def search(place: Place, pattern: str, contains: str, *, seconds: float = SECONDS) -> str:
    """What was found, as lines for the model, and what was left out."""
    if not pattern and not contains:
        raise ToolError("Give `pattern` (names of files) or `contains` (text in them), or both.")
    literal, note = SPECIAL.search(contains) is None, ""
    if not literal:
        try:
            re.compile(contains)
        except (re.error, RecursionError, OverflowError) as wrong:
            literal, note = True, f"[`contains` is no regex ({wrong}); searched for as plain text]"
    file = await in_thread(is_file, place)
    wanted = Wanted(
        root=str(place.root),
        parts=place.parts[:-1] if file else place.parts,
        above=above(place, file=file),
        only=place.parts[-1] if file else "",
        pattern="" if file else pattern,
        contains=contains,
        barred=barred.get(),
        literal=literal,
        ignore_case=re.sub(r"\\.", "", contains).islower(),
        seconds=seconds,
    )
    found = in_thread(lambda: list(seek(wanted))) if is_easy(wanted) else apart(wanted)
    return "\n".join([*await found, *([note] if note else [])])


def is_file(place: Place) -> bool:
    try:
        with folder_at(place):
            return False
    except NotADirectoryError:
        return True


def above(place: Place, *, file: bool) -> str:
    """What stands before the names below a place, so that they can be read as they are."""
    folder = place.name.rpartition("/")[0] if file else place.name
    return "" if folder in ("", ".") else f"{folder.rstrip('/')}/"


def is_easy(wanted: Wanted) -> bool:
    """It cannot take long: no groups, and at most one repeat."""
    return wanted.literal or ("(" not in wanted.contains and repeats(wanted.contains) < 2)


def repeats(expression: str) -> int:
    return len(REPEATS.findall(expression))


async def apart(wanted: Wanted) -> list[str]:
    """The search as a process. What it had found is kept if it has to be ended."""
    command = [sys.executable or "python", "-P", "-c", CHILD]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = await anyio.open_process(command, stderr=subprocess.DEVNULL, env=environment)
    except OSError as wrong:
        raise ToolError(NOT_RUN) from wrong
    lines: list[str] = []
    async with process:
        with anyio.move_on_after(wanted.seconds + GRACE) as time:
            async for line in answers(process, request(wanted)):
                lines.append(line)
        if time.cancelled_caught:
            process.kill()
            lines.append("[stopped: the regex takes too long; give a simpler one, or plain text]")
        elif process.returncode != 0:
            raise ToolError(NOT_RUN)
    return lines


async def answers(process: Process, question: bytes) -> AsyncIterator[str]:
    """The lines that a process finds, until it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(anyio.BrokenResourceError):  # it died at once: its return code tells
        await process.stdin.send(question)
        await process.stdin.aclose()
    rest = ""
    async for text in TextReceiveStream(process.stdout):
        *whole, rest = (rest + text).split("\n")
        for line in whole:
            yield str(json.loads(line))
    await process.wait()
