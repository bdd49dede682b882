"""The words of a line of shell, as the shell would see them: quotes taken off, patterns noticed.

What the words stand in is `syntax`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

GLOB = re.compile(r"[*?\[]")
BRACES = re.compile(r"\{.*(,|\.\.)", re.DOTALL)
"""One word that the shell makes several of: `{a,b}`, `{1..9}`."""
FOLDERS = re.compile(r"~[-+\d]|\w+=(.*:)?~[-+\d]")
"""`~+` is the folder one is in, `~-` the one before, `~1` another that the shell remembers."""
ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
ANSI_C = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
EXPANDS = {
    "simple_expansion", "expansion", "command_substitution", "process_substitution",
    "arithmetic_expansion", "brace_expression",
}  # fmt: skip


class Unreadable(ValueError):
    """A command whose shape is not certain, and why."""


@dataclass(frozen=True, slots=True)
class Word:
    source: str
    """As it was written."""
    value: str | None
    """What the shell makes of it; None if only the shell can know."""
    globs: bool = False
    """It stands for all files that match; `value` is the pattern."""


UNKNOWN = Word("...", None)
"""A word that will come from elsewhere: a line of input, a file that was found."""


def word(node: "Node") -> Word:
    source = text(node)
    bare = unquoted(node)
    value = literal(node)
    if value is None or BRACES.search(bare) or FOLDERS.match(source):
        return Word(source, None)
    return Word(source, value, bool(GLOB.search(bare)))


def literal(node: "Node") -> str | None:
    """What the shell makes of a word, if that is certain."""
    match node.type:
        case "word" | "number" | "regex" | "test_operator" | "variable_name" | "extglob_pattern":
            written = text(node)
            if node.children or re.search(r"[$`]", re.sub(r"\\.", "", written)):
                return None
            return re.sub(r"\\(.)", r"\1", written.replace("\\\n", ""), flags=re.DOTALL)
        case "raw_string":
            return text(node)[1:-1]
        case "ansi_c_string":
            return ansi_c(text(node)[2:-1])
        case "string":
            return quoted(node)
        case "translated_string":
            return literal(node.children[-1])
        case "concatenation":
            parts = [literal(child) for child in node.children]
            joined = "".join(part or "" for part in parts)
            return None if None in parts else joined
        case "variable_assignment" if not any(c.type in EXPANDS for c in descendants(node)):
            return text(node)
        case _:
            return None if node.is_named else text(node)


def quoted(node: "Node") -> str | None:
    """The inside of double quotes, in which a backslash means something before four characters."""
    if any(child.is_named and child.type != "string_content" for child in node.children):
        return None
    return re.sub(r'\\([$`"\\\n])', lambda m: "" if m[1] == "\n" else m[1], text(node)[1:-1])


def ansi_c(written: str) -> str | None:
    """The inside of `$'...'`."""
    if re.search(r"\\c", written):
        return None

    def one(match: re.Match[str]) -> str:
        digits = match[1] or match[2] or match[3]
        if digits:
            return chr(min(int(digits, 16), 0x10FFFF))
        if match[4]:
            return chr(int(match[4], 8) & 0xFF)
        return ESCAPES.get(match[5], "\\" + match[5])

    return ANSI_C.sub(one, written)


def unquoted(node: "Node") -> str:
    """The parts of a word in which `*`, `?` and `[` would match files."""
    if node.type == "word":
        return re.sub(r"\\.", "", text(node))
    if node.type == "concatenation":
        return "".join(unquoted(child) for child in node.children)
    return text(node) if node.type == "extglob_pattern" else ""


def descendants(node: "Node") -> Iterator["Node"]:
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        pending += found.children


def text(node: "Node") -> str:
    return (node.text or b"").decode()
