"""Where the grammar and bash could see different things in the same text, so that nothing is certain.

A line with one of these is `Unreadable`: a person is asked, and no pattern allows it. Here are also the
places where bash runs what stands in a text: arithmetic takes a variable for an expression, and
an expression may hold a command. What is only ever a word is `words`, the shape is `syntax`.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.tools.bash.words import descendants, literal, text

if TYPE_CHECKING:
    from tree_sitter import Node

CONTINUED = re.compile(r"[^\s\\]\\\n\S|(?:^|\n)[ \t]*\\\n")
"""A line that goes on inside a word, of which the grammar makes two; and one that is nothing but
its own continuation, which the grammar takes for no line at all."""
APART = (b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")")
"""What may stand before a comment."""
DELIMITER = re.compile(r"(?:\w+|'\w+'|\"\w+\"|\\\w+)")
REST = re.compile(r"""(?:[^'"\\`$()<#]|'[^'\n]*'|"[^"`$\\\n]*")*""")
"""What may stand in a line behind the delimiter of a here-document."""
GOES_ON = ("|", "&&", "||")
NUMBERS = re.compile(r"\$\(\([\d\s+*/%<>=!&|^~?:,()-]*\)\)")
EXPANSION = re.compile(
    r"\$\{(?:#?\w+(?:\[(?:[@*]|\d+)\])?|[\w@*#?$!-]|\w+(?::?[-=+?]|##?|%%?|//?[#%]?|\^\^?|,,?).*)\}",
    re.DOTALL,
)
"""`${...}` in which nothing is calculated, and no text is run."""
SUBSCRIPT = re.compile(r"\w+\[(?:[@*]|\d+)\]")
COMPARES = ("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R")
HIDDEN = re.compile(r"\[.*(\$\(|`|\$\{)", re.DOTALL)
"""A text that runs a command as soon as it is taken for the name of a variable."""
SUBSTITUTES = ("command_substitution", "arithmetic_expansion", "expansion")
ONE_LINE = ("command", "test_command", "unary_expression", "binary_expression", "file_redirect",
            "declaration_command", "unset_command", "herestring_redirect")  # fmt: skip
"""Nodes that end with their line."""
GAP = re.compile(rb"(?:\s|\\\n)*")
OPEN = (
    "string_content",
    "raw_string",
    "ansi_c_string",
    "comment",
    "heredoc_body",
    "heredoc_end",
    "regex",
)
"""Nodes in which any text may stand."""
CLOSED = ("raw_string", "ansi_c_string", "comment", "heredoc_body", "heredoc_end")
"""Those in which backticks are no commands, or were looked for before."""


def doubts(command: str, source: bytes, root: "Node") -> Iterator[str]:
    """Why it is not certain what bash would make of this line."""
    if CONTINUED.search(command):
        yield "a line goes on where the grammar sees another one"
    documents = 0
    for node in descendants(root):
        if is_torn(node, source):
            yield f"'{text(node)}' can be read in two ways"
        if node.type == "heredoc_redirect":
            documents += 1
            yield from of_document(node, source)
        elif why := calculates(node):
            yield why
    yield from unseen(source, root, documents)


def is_torn(node: "Node", source: bytes) -> bool:
    """A comment that begins inside a word; a word that has a gap, a line break or a lone `$`; and
    a command that does not end with its line."""
    if node.type == "comment":
        return node.start_byte > 0 and source[node.start_byte - 1 : node.start_byte] not in APART
    if node.type == "word":
        return re.search(r"\s", re.sub(r"\\.", "", text(node), flags=re.DOTALL)) is not None
    pairs = list(pairwise(node.children))
    if node.type in ONE_LINE:
        gaps = (source[one.end_byte : two.start_byte] for one, two in pairs)
        return any(b"\n" in gap.replace(b"\\\n", b"") for gap in gaps)
    if node.type not in ("variable_assignment", "concatenation"):
        return False
    if any(text(one).endswith("$") and text(two)[:1] in ("'", '"') for one, two in pairs):
        return True  # bash takes `$"..."` for one thing, also inside a word
    return any(one.end_byte != two.start_byte for one, two in pairs)


# Here-documents


def of_document(node: "Node", source: bytes) -> Iterator[str]:
    """Its end is looked for again, the way bash does: the line that is the delimiter."""
    start = next((c for c in node.children if c.type == "heredoc_start"), None)
    end = next((c for c in node.children if c.type == "heredoc_end"), None)
    if start is None or end is None or not DELIMITER.fullmatch(text(start)):
        yield "a here-document has an unusual delimiter, or no end"
        return
    line, _, body = source[start.end_byte :].partition(b"\n")
    rest = line.decode().rstrip()
    if not REST.fullmatch(rest) or rest.endswith(GOES_ON) or "<<" in rest:
        yield "something unusual stands behind the delimiter of a here-document"
    delimiter = text(start).strip("'\"\\")
    tabs = any(child.type == "<<-" for child in node.children)
    at = start.end_byte + len(line) + 1
    first = at
    for one in body.split(b"\n"):
        plain = one.lstrip(b"\t") if tabs else one
        if plain == delimiter.encode():
            break
        at += len(one) + 1
    if end.start_byte != at + len(one) - len(plain):
        yield "a here-document may end elsewhere"
    if text(start) != delimiter:
        return
    if b"`" in source[first:at]:
        yield "a here-document holds a backtick, which runs a command"
    seen = [(n.start_byte, n.end_byte) for n in descendants(node) if n.type in SUBSTITUTES]
    for sign in re.finditer(rb"\$[({\[]", source[first:at]):
        if not any(begin <= first + sign.start() < end for begin, end in seen):
            yield "a here-document holds a substitution that the grammar does not see"


def unseen(source: bytes, root: "Node", documents: int) -> Iterator[str]:
    """Text that no part of the tree stands for; and `<<` that the grammar takes for something else."""
    end = 0
    seen = 0
    for leaf in leaves(root):
        gap = source[end : leaf.start_byte]
        if not (GAP.fullmatch(gap) or (leaf.type in ("<<", "<<-") and gap.strip() == b"-")):
            yield f"'{gap.decode(errors='replace').strip()}' is left over"
        end = max(end, leaf.end_byte)
        if leaf.type not in CLOSED and "`" in re.sub(r"\\.", "", text(leaf), flags=re.DOTALL):
            # Nested and touching ones are read differently, and `$(...)` does the same.
            yield "it has a command between backticks"
        if leaf.type == "!" and not source[end : end + 1].isspace():
            yield "'!' touches a word"  # to bash it is a part of the word
        if leaf.type in ("<<", "<<-"):
            seen += 1
        elif leaf.type not in (*OPEN, "<<<") and "<<" in text(leaf):
            yield "'<<' stands in a word"
    if not GAP.fullmatch(source[end:]):
        yield "something is left over"
    if seen != documents:
        yield "a shift can be taken for a here-document"


def leaves(node: "Node") -> Iterator["Node"]:
    """In the order of the text; what is quoted is one leaf."""
    pending = [node]
    while pending:
        found = pending.pop()
        if found.children and found.type not in OPEN:
            pending += reversed(found.children)
        else:
            yield found


# Calculations


def calculates(node: "Node") -> str:
    match node.type:
        case "arithmetic_expansion" if not NUMBERS.fullmatch(text(node)):
            return "it calculates, and what is calculated may be a command"
        case "compound_statement" | "test_command" if text(node).startswith("(("):
            return "it calculates, and what is calculated may be a command"
        case "c_style_for_statement":
            return "it calculates, and what is calculated may be a command"
        case "subscript" if not SUBSCRIPT.fullmatch(text(node)):
            return "it has a subscript, which may be a command"
        case "array" if any(text(child).startswith("[") for child in node.children):
            return "it has a subscript, which may be a command"
        case "expansion" if not EXPANSION.fullmatch(text(node)):
            return f"'{text(node)}' may run what a variable holds"
        case "test_command" if text(node).startswith("[[") and compares(node):
            return "it compares numbers, and a number may be a command"
        case "raw_string" | "string" | "word" | "ansi_c_string" | "concatenation":
            hides = HIDDEN.search(literal(node) or "")
            return "a word may run a command if it is taken for a variable" if hides else ""
        case _:
            return ""


def compares(node: "Node") -> bool:
    """Between numbers as they stand there nothing is calculated."""
    operators = [c for c in descendants(node) if text(c) in COMPARES and not c.children]
    for operator in operators:
        around = operator.parent.children if operator.parent is not None else []
        sides = [side for side in around if text(side) not in COMPARES]
        if not all(re.fullmatch(r"-?\d+|\$[?#]", text(side)) for side in sides):
            return True
    return False
