"""The tools that read and change files: what the model is told of them, and what they touch.

The work itself is done in threads by `looking`, `changing` and `seeking`; where a path may lead is
`workspace`. A change keeps the old file first, so that it can be taken back (`undo`), and
is either done or not, also when it is cancelled in the middle.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio.to_thread

from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.tools.arguments import reader
from holdfast.tools.barred import barred
from holdfast.tools.base import Access, Arguments, Context, Output, Tool, ToolError, Touch
from holdfast.tools.changing import Change, Seen, carry_out, found_at, replacing, written
from holdfast.tools.disk import Stamp, in_words
from holdfast.tools.looking import listing, missing, read
from holdfast.tools.search import SEARCH, search
from holdfast.tools.texts import decoded
from holdfast.tools.threads import in_thread
from holdfast.tools.workspace import Folder, Place, Workspace

Check: TypeAlias = Callable[[Place, Stamp], None]
"""`ToolError` if somebody else changed the file since the session saw it."""
PAGE = 5_600
"""Characters of a file that are read at once: what fits into the usual cap of a result, with the
line that says how to go on."""

READ = ToolSpec(
    name="read_file",
    description=(
        "Read a text file, from line `offset` on. The last line says if there is more. "
        "Images are shown to the user."
    ),
    parameters="""{"type":"object","properties":{"path":{"type":"string"},\
"offset":{"type":"integer","minimum":0,"description":"first line, from 1"},\
"limit":{"type":"integer","minimum":1,"description":"number of lines"}},\
"required":["path"],"additionalProperties":false}""",
    effect=SideEffect.READ,
    mutates=False,
    aliases=("cat", "open_file", "view_file", "view", "readfile", "file_read", "get_file"),
)
WRITE = ToolSpec(
    name="write_file",
    description="Write a whole file, in place of what was in it. Makes the folders it needs.",
    parameters="""{"type":"object","properties":{"path":{"type":"string"},\
"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}""",
    effect=SideEffect.IDEMPOTENT,
    aliases=("create_file", "save_file", "writefile", "file_write"),
)
EDIT = ToolSpec(
    name="edit_file",
    description=(
        "Replace text in a file. `old` must be in it exactly once, character by character, "
        "unless `all` is true. Returns the diff."
    ),
    parameters="""{"type":"object","properties":{"path":{"type":"string"},\
"old":{"type":"string"},"new":{"type":"string"},\
"all":{"type":"boolean","description":"replace every one"}},\
"required":["path","old","new"],"additionalProperties":false}""",
    effect=SideEffect.UNSAFE,
)
LIST = ToolSpec(
    name="list_dir",
    description="List a folder: folders end with /, files have their size.",
    parameters="""{"type":"object","properties":{"path":{"type":"string","description":\
"default: the workspace"},"hidden":{"type":"boolean","description":"also names with a dot"}},\
"additionalProperties":false}""",
    effect=SideEffect.READ,
    mutates=False,
    aliases=("ls", "dir", "list_files", "list_directory", "listdir"),
)


@dataclass(frozen=True, slots=True)
class Reach:
    """What file tools may use without asking, beside the workspace, and what they may not."""

    also: tuple[Folder, ...] = ()
    guarded: tuple[Path, ...] = ()

    def at(self, root: Path) -> Workspace:
        return Workspace(root, self.also, self.guarded)


def file_tools(reach: Reach | None = None) -> tuple[Tool, ...]:
    """All of them, which remember together what they have seen."""
    reach, seen = reach or Reach(), Seen()
    return (
        read_file_tool(reach, seen),
        write_file_tool(reach, seen),
        edit_file_tool(reach, seen),
        list_dir_tool(reach),
        search_files_tool(reach),
    )


def read_file_tool(reach: Reach, seen: Seen, *, page: int = PAGE) -> Tool:
    async def run(arguments: Arguments, context: Context) -> Output:
        workspace, path = reach.at(context.workspace), text_of(arguments, "path")
        offset, limit = arguments.get("offset"), arguments.get("limit")

        def work() -> Output:
            place = workspace.admitted(path, changes=False)
            try:
                output, stamp = read(
                    place,
                    offset if isinstance(offset, int) else 1,
                    limit if isinstance(limit, int) else None,
                    page,
                )
            except FileNotFoundError:
                raise missing(workspace, place, path) from None
            except OSError as wrong:
                raise in_words(wrong, place) from wrong
            seen.note(context.session, place, stamp)
            return output

        return await in_thread(work)

    return Tool(spec=READ, parse=reader(READ.parameters), touch=looks(reach), run=run)


def list_dir_tool(reach: Reach) -> Tool:
    async def run(arguments: Arguments, context: Context) -> str:
        workspace, path = reach.at(context.workspace), text_of(arguments, "path") or "."

        def work() -> str:
            place = workspace.admitted(path, changes=False)
            try:
                return listing(place, hidden=arguments.get("hidden") is True, barred=barred.get())
            except FileNotFoundError:
                raise missing(workspace, place, path) from None
            except NotADirectoryError:
                raise ToolError(f"{place.name} is no folder. read_file reads a file.") from None
            except OSError as wrong:
                raise in_words(wrong, place) from wrong

        return await in_thread(work)

    return Tool(spec=LIST, parse=reader(LIST.parameters), touch=looks(reach), run=run)


def search_files_tool(reach: Reach) -> Tool:
    async def run(arguments: Arguments, context: Context) -> str:
        workspace, path = reach.at(context.workspace), text_of(arguments, "path") or "."
        place = await in_thread(workspace.admitted, path, changes=False)
        try:
            return await search(
                place, text_of(arguments, "pattern"), text_of(arguments, "contains")
            )
        except FileNotFoundError:
            raise await in_thread(missing, workspace, place, path) from None
        except OSError as wrong:
            raise in_words(wrong, place) from wrong

    return Tool(spec=SEARCH, parse=reader(SEARCH.parameters), touch=looks(reach), run=run)


def write_file_tool(reach: Reach, seen: Seen) -> Tool:
    def change_of(arguments: Arguments, workspace: Workspace, check: Check) -> Change:
        place = workspace.admitted(text_of(arguments, "path"), changes=True)
        return written(place, text_of(arguments, "content"), check)

    return changing_tool(reach, seen, WRITE, change_of)


def edit_file_tool(reach: Reach, seen: Seen) -> Tool:
    def change_of(arguments: Arguments, workspace: Workspace, check: Check) -> Change:
        path, everywhere = text_of(arguments, "path"), arguments.get("all") is True
        place = workspace.admitted(path, changes=True)
        old, new = text_of(arguments, "old"), text_of(arguments, "new")
        try:
            return replacing(place, old, new, everywhere=everywhere)
        except FileNotFoundError:
            raise missing(workspace, place, path) from None

    async def probe(arguments: Arguments, context: Context) -> str | None:
        """Whether an edit was made before the program stopped: then `old` is gone, and `new` there."""

        def work() -> str | None:
            place = reach.at(context.workspace).admitted(text_of(arguments, "path"), changes=True)
            found = found_at(place)
            text = decoded(found[0])[0] if found else ""
            old, new = text_of(arguments, "old"), text_of(arguments, "new")
            made = new and new in text and old not in text
            return f"{place.name} was edited, before the program stopped." if made else None

        return await in_thread(work)

    return replace(changing_tool(reach, seen, EDIT, change_of), probe=probe)


def changing_tool(
    reach: Reach,
    seen: Seen,
    spec: ToolSpec,
    change_of: Callable[[Arguments, Workspace, Check], Change],
) -> Tool:
    """A tool that makes one file another one, which `change_of` works out."""

    async def run(arguments: Arguments, context: Context) -> str:
        workspace = reach.at(context.workspace)
        check = partial(seen.check, context.session)
        change = await in_thread(change_of, arguments, workspace, check)
        if not change.is_needed:
            return change.told
        await context.keep(change.place.real)
        # Not abandoned when the call is cancelled: nobody could say whether it was done.
        stamp = await anyio.to_thread.run_sync(carry_out, change)
        seen.note(context.session, change.place, stamp)
        return change.told

    async def preview(arguments: Arguments, root: Path) -> str:
        def work() -> str:
            try:
                return change_of(arguments, reach.at(root), lambda place, stamp: None).diff
            except ToolError as wrong:
                return f"It would fail: {wrong}"

        return await in_thread(work)

    return Tool(
        spec=spec,
        parse=reader(spec.parameters),
        touch=changes(reach),
        run=run,
        preview=preview,
    )


# --- what they touch ------------------------------------------------------------------------


def looks(reach: Reach) -> Callable[[Arguments, Path], Touch]:
    return partial(touched, reach, Access.READ)


def changes(reach: Reach) -> Callable[[Arguments, Path], Touch]:
    return partial(touched, reach, Access.EDIT)


def touched(reach: Reach, access: Access, arguments: Arguments, root: Path) -> Touch:
    workspace = reach.at(root)
    path = text_of(arguments, "path") or "."
    try:
        place = workspace.place(path)
    except ToolError:
        return Touch(access, (path,))  # it is no path at all, as the call will be told
    danger = workspace.danger(place, changes=access is Access.EDIT)
    # Also the name that was written: a rule that forbids it is not got round with a symlink.
    alias = workspace.below(place.written).as_posix()
    return Touch(access, tuple(dict.fromkeys((place.name, alias))), danger)


def text_of(arguments: Arguments, name: str) -> str:
    value = arguments.get(name)
    return value if isinstance(value, str) else ""
