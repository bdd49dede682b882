"""Replacing an exact piece of a text, and saying what changed, or why nothing was found.

Nothing is replaced that merely looks like the piece: where it is not there exactly, the model is
shown what is, and tries again. Only line ends are read as meant, since models write no others.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches, unified_diff
from heapq import nlargest

from holdfast.tools.base import ToolError
from holdfast.tools.texts import Form, count

LINES_NAMED = 10
CLOSE_LINES = 20_000
"""Lines of a file in which the closest is looked for."""
COMPARED = 20
"""Lines that are compared letter by letter: those that have most pairs of letters in common with
what is looked for. To compare all of them takes seconds for each thousand."""
LINE_COMPARED = 200
DIFFED = 3_000
"""Lines of which a diff is made; it takes the square of them."""
DIFF_SHOWN = 120
CONTEXT = 3
HUNK = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")
NUMBERED = re.compile(r"^\s*\d+(?:\t|: |\| ?|→)", re.MULTILINE)
QUOTES = str.maketrans("‘’‚‛“”„‟–—\u00a0", "''''\"\"\"\"-- ")


def edited(text: str, form: Form, old: str, new: str, *, everywhere: bool) -> tuple[str, list[int]]:
    """The text with `old` replaced, and the lines where it stood; `ToolError` if it is not there,
    or there several times and not meant everywhere."""
    if not old:
        raise ToolError("`old` is empty: give the text to replace. write_file writes a whole file.")
    if old == new:
        raise ToolError("`old` and `new` are the same: there is nothing to change.")
    for written, instead in as_written(old, new, form):
        places = list(occurrences(text, written))
        if not places:
            continue
        lines = [text.count("\n", 0, place) + 1 for place in places]
        if len(places) > 1 and not everywhere:
            raise ToolError(
                f"`old` is there {len(places)} times, in lines {some(lines)}. Give more of the "
                "lines around the one you mean, or all=true to replace every one."
            )
        return text.replace(written, instead), lines
    raise ToolError(not_there(text, old, new))


def as_written(old: str, new: str, form: Form) -> Iterator[tuple[str, str]]:
    """The piece with the line ends that the file may have, those of most lines first."""
    if "\r" in old:
        yield old, new
        return
    wide = old.replace("\n", "\r\n"), re.sub(r"\r?\n", "\r\n", new)
    yield from (wide, (old, new)) if form.newline == "\r\n" else ((old, new), wide)


def occurrences(text: str, piece: str) -> Iterator[int]:
    at = text.find(piece)
    while at >= 0:
        yield at
        at = text.find(piece, at + len(piece))


def some(numbers: list[int]) -> str:
    named = ", ".join(str(number) for number in numbers[:LINES_NAMED])
    return f"{named}, ..." if len(numbers) > LINES_NAMED else named


# --- when it is not there -------------------------------------------------------------------


def not_there(text: str, old: str, new: str) -> str:
    """Why not, as far as it can be seen, and what is there instead."""
    said = ["`old` is not in the file, so nothing was changed."]
    plain = text.replace("\r\n", "\n")
    if len(new.strip()) > 3 and (made := plain.find(new.strip("\n"))) >= 0:
        line = plain.count("\n", 0, made) + 1
        said.append(f"`new` is already there, at line {line}: perhaps this edit was made before.")
    for why, meant in other_readings(old):
        if meant.strip() and meant in plain:
            return " ".join([*said, why])
    lines = plain.split("\n")
    wanted = [squeezed(line) for line in old.strip("\n").split("\n")]
    at = alike(lines, wanted)
    if at is not None:
        said.append("It differs only in blanks or quotes. The file has:")
        return f"{' '.join(said)}\n{shown(lines, at, len(wanted))}"
    at = closest(lines, wanted)
    if at is None:
        return " ".join([*said, "Nothing in it is like it: read the file again."])
    said.append(f"The closest, from line {at + 1}:")
    return f"{' '.join(said)}\n{shown(lines, at, len(wanted))}"


def other_readings(old: str) -> Iterator[tuple[str, str]]:
    yield "Write line breaks as such, not as a backslash and an n.", old.replace("\\n", "\n")
    yield "Leave out the line numbers: they are not in the file.", NUMBERED.sub("", old)
    yield "Leave out the blanks and line breaks around it.", old.strip()


def squeezed(line: str) -> str:
    return " ".join(line[:LINE_COMPARED].translate(QUOTES).replace('"', "'").split())


def alike(lines: list[str], wanted: list[str]) -> int | None:
    """Where the same lines stand, whatever their blanks and quotes."""
    there = [squeezed(line) for line in lines]
    for at in range(len(there) - len(wanted) + 1):
        if there[at] == wanted[0] and there[at : at + len(wanted)] == wanted:
            return at
    return None


def closest(lines: list[str], wanted: list[str]) -> int | None:
    """Where the line most like the first one that says something stands."""
    first = next((number for number, line in enumerate(wanted) if len(line) > 2), 0)
    there = [squeezed(line) for line in lines[:CLOSE_LINES]]
    pairs = pairs_in(wanted[first])

    def likeness(line: str) -> float:
        own = pairs_in(line)
        return len(own & pairs) / (len(own) + len(pairs) + 1)

    likely = nlargest(COMPARED, dict.fromkeys(there), key=likeness)
    close = get_close_matches(wanted[first], likely, n=1, cutoff=0.6)
    return max(0, there.index(close[0]) - first) if close else None


def pairs_in(line: str) -> set[str]:
    return {line[at : at + 2] for at in range(len(line) - 1)}


def shown(lines: list[str], at: int, many: int) -> str:
    return "\n".join(line[:500] for line in lines[at : at + min(many, 20)])


# --- what changed ---------------------------------------------------------------------------


def diff(name: str, before: str, after: str) -> str:
    """A unified diff; of very large changes only their size."""
    old, new = before.splitlines(), after.splitlines()
    start = common(old, new)
    end = common(old[start:][::-1], new[start:][::-1])
    gone, come = len(old) - start - end, len(new) - start - end
    if not gone and not come:
        return "[only line ends differ]" if before != after else ""
    if gone + come > DIFFED:
        return f"[from line {start + 1} on {count(gone, 'line')} replaced by {come}]"
    first = max(0, start - CONTEXT)
    last = max(0, end - CONTEXT)
    lines = unified_diff(
        old[first : len(old) - last],
        new[first : len(new) - last],
        f"a/{name}",
        f"b/{name}",
        lineterm="",
        n=CONTEXT,
    )
    told = [HUNK.sub(lambda at: moved(at, first), line) for line in lines]
    if len(told) > DIFF_SHOWN:
        told[DIFF_SHOWN:] = [f"[... {len(told) - DIFF_SHOWN} more lines of the diff]"]
    return "\n".join(told)


def common(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))


def moved(at: re.Match[str], by: int) -> str:
    return f"@@ -{int(at[1]) + by}{at[2]} +{int(at[3]) + by}{at[4]} @@"
