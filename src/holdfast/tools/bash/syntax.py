"""A line of shell as the simple commands in it, read with the grammar of tree-sitter.

Only the shape is told here: words, redirections, what feeds what. What the commands would do is for
`commands` to say. Where the grammar and bash could disagree, nothing is told at all: `Unreadable`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

DEEPEST = 60
"""Levels of nesting in one command; nobody writes more, and the reading is recursive."""
LONGEST = 100_000
GLOB = re.compile(r"[*?\[]")
BRACES = re.compile(r"\{.*(,|\.\.)", re.DOTALL)
"""One word that the shell makes several of: `{a,b}`, `{1..9}`."""
SPLIT_WORD = re.compile(r"[^\s\\]\\\n\S")
"""A line that goes on inside a word: bash joins the halves, the grammar makes two words of it."""
ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
ANSI_C = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
APART = (b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")")
"""What may stand before a comment."""
EXPANDS = {
    "simple_expansion", "expansion", "command_substitution", "process_substitution",
    "arithmetic_expansion", "brace_expression",
}  # fmt: skip
ARGUMENTS = EXPANDS | {
    "word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation",
    "number", "variable_assignment", "variable_name", "array", "regex", "extglob_pattern",
    "arithmetic_expansion", "test_operator",
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


@dataclass(frozen=True, slots=True)
class Redirect:
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command: its words, and what is around them."""

    words: tuple[Word, ...]
    assigned: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    fed: bool = False
    """Its input is what another command writes."""
    document: Word | None = None
    """Its input is this text: a here-document or a here-string."""


@dataclass(frozen=True, slots=True)
class Line:
    simples: tuple[Simple, ...]
    bombs: tuple[str, ...]
    """Functions that start themselves in a pipe or in the background."""
    functions: tuple[str, ...]


def read(command: str) -> Line:
    """The simple commands of a line, those in substitutions and functions too."""
    if len(command) > LONGEST:
        raise Unreadable(f"it is longer than {LONGEST} characters")
    odd = next(
        (c for c in command if c not in " \t\n" and (c.isspace() or not c.isprintable())), ""
    )
    if odd:
        raise Unreadable(f"it holds the character {odd!r}")
    if SPLIT_WORD.search(command):
        raise Unreadable("a line goes on in the middle of a word")
    root = parser().parse(command.encode()).root_node
    if root.has_error:
        raise Unreadable("it is not complete, or not written as bash would have it")
    for node in descendants(root):
        if is_torn(node, command.encode()):
            raise Unreadable(f"'{text(node)}' can be read in two ways")
    walk = Walk()
    walk.into(root, fed=False, depth=0)
    return Line(tuple(walk.simples), tuple(walk.bombs), tuple(walk.functions))


def parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


Redirections: TypeAlias = tuple[tuple[Redirect, ...], tuple[Word, ...], Word | None]
"""What is redirected, the words behind a target, which are arguments, and a document."""


class Walk:
    """Goes through the tree once and collects."""

    def __init__(self) -> None:
        self.simples: list[Simple] = []
        self.redirections: dict[int, Redirections] = {}
        """Those that stand elsewhere in the tree than the command they belong to."""
        self.bombs: list[str] = []
        self.functions: list[str] = []

    def into(self, node: "Node", *, fed: bool, depth: int) -> None:
        if depth > DEEPEST:
            raise Unreadable(f"it is nested more than {DEEPEST} levels deep")
        match node.type:
            case "command":
                self.commands(node, fed=fed)
            case "redirected_statement":
                self.redirected(node, fed=fed, depth=depth)
                return
            case "declaration_command" | "unset_command":
                self.simples.append(Simple(tuple(pieces(node))))
            case "test_command":
                self.simples.append(Simple((Word("[", "["), *operands(node))))
            case "variable_assignment" if parent_type(node) != "command":
                self.simples.append(Simple((), (assignment(node),)))
            case "for_statement" | "c_style_for_statement":
                self.loops(node)
            case "function_definition":
                self.defines(node)
            case "compound_statement" if touches(node.children[:2]):
                # To bash a brace opens a group only if something blank follows it.
                raise Unreadable("a brace stands at the beginning of a word")
            case _:
                pass
        after_bar = False
        for child in node.children:
            inside = fed or (node.type == "pipeline" and after_bar)
            after_bar = after_bar or child.type in ("|", "|&")
            self.into(child, fed=inside, depth=depth + 1)

    def redirected(self, node: "Node", *, fed: bool, depth: int) -> None:
        """A statement with redirections.

        The grammar gives those of `a && b > file` to both commands; they are the last one's. Those
        of a compound command feed everything in it.
        """
        body = node.child_by_field_name("body")
        redirects, extra, document = redirections(node)
        last = body
        while last is not None and last.type in ("list", "pipeline"):
            last = last.children[-1]
        if last is not None and last.type == "command":
            self.redirections[last.id] = (redirects, extra, document)
        elif extra:
            raise Unreadable("words stand behind the redirection of a compound command")
        else:
            self.simples.append(Simple((), (), redirects))
            fed = fed or document is not None
        for child in node.children:
            self.into(child, fed=fed, depth=depth + 1)

    def commands(self, node: "Node", *, fed: bool) -> None:
        own = simple(node)
        redirects, extra, document = self.redirections.pop(node.id, ((), (), None))
        self.simples.append(
            Simple(
                own.words + extra,
                own.assigned,
                own.redirects + redirects,
                fed,
                document or own.document,
            )
        )

    def loops(self, node: "Node") -> None:
        """The variable of a loop is assigned too, and may be one that programs obey."""
        variable = node.child_by_field_name("variable")
        if variable is not None:
            self.simples.append(Simple((), ((text(variable), UNKNOWN),)))

    def defines(self, node: "Node") -> None:
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name is None or body is None:
            raise Unreadable("it defines a function without a name")
        self.functions.append(text(name))
        kinds = {child.type for child in descendants(body)}
        calls = {text(child) for child in descendants(body) if child.type == "command_name"}
        if text(name) in calls and kinds & {"|", "|&", "&"}:
            self.bombs.append(text(name))


def simple(node: "Node") -> Simple:
    """A command without the redirections that follow it."""
    assigned = tuple(assignment(c) for c in node.children if c.type == "variable_assignment")
    redirects, extra, document = redirections(node)
    if extra:
        # The grammar gives a redirection in front of a command all the words it can see.
        raise Unreadable("a redirection stands between its words")
    return Simple(
        tuple(pieces(node, skip=("variable_assignment",))), assigned, redirects, False, document
    )


def pieces(node: "Node", skip: tuple[str, ...] = ()) -> Iterator[Word]:
    end = -1
    for child in node.children:
        if child.type in skip or child.type.endswith("redirect"):
            end = -1
            continue
        if child.start_byte == end:
            raise Unreadable("two words touch")
        end = child.end_byte
        if child.type == "command_name":
            child = child.children[0]
        yield word(child)


def operands(node: "Node") -> Iterator[Word]:
    """The words of a test, however its expressions are nested."""
    for child in node.children:
        if child.type in ARGUMENTS:
            yield word(child)
        else:
            yield from operands(child)


def redirections(node: "Node") -> Redirections:
    redirects: list[Redirect] = []
    extra: list[Word] = []
    document: Word | None = None
    pending = [child for child in node.children if child.type.endswith("redirect")]
    while pending:
        child = pending.pop(0)
        targets = [word(piece) for piece in child.children if piece.type in ARGUMENTS]
        if child.type == "file_redirect":
            operator = next((p.type for p in child.children if not p.is_named), ">")
            # `>&-` closes a stream and has no target.
            redirects.append(Redirect(operator, targets[0] if targets else Word("-", "-")))
            extra += targets[1:]
        elif child.type == "herestring_redirect":
            document = targets[0] if len(targets) == 1 else UNKNOWN
            extra += targets[1:]
        else:
            document = heredoc(child)
            extra += targets
            pending += [piece for piece in child.children if piece.type.endswith("redirect")]
    return tuple(redirects), tuple(extra), document


def heredoc(node: "Node") -> Word:
    body = next((c for c in node.children if c.type == "heredoc_body"), None)
    if body is None:
        return Word("", "")
    literal = not any(child.type in EXPANDS for child in descendants(body))
    return Word(text(body), text(body) if literal else None)


def assignment(node: "Node") -> tuple[str, Word]:
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    if name is None:
        raise Unreadable("it assigns to something without a name")
    return text(name).partition("[")[0], Word("", "") if value is None else word(value)


def word(node: "Node") -> Word:
    source = text(node)
    bare = unquoted(node)
    value = literal(node)
    if value is None or BRACES.search(bare):
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


def is_torn(node: "Node", source: bytes) -> bool:
    """Where the grammar sees something else than bash: a comment that begins inside a word, and
    a word that has a gap or a line break."""
    if node.type == "comment":
        return node.start_byte > 0 and source[node.start_byte - 1 : node.start_byte] not in APART
    if node.type == "word":
        return re.search(r"\s", re.sub(r"\\.", "", text(node), flags=re.DOTALL)) is not None
    if node.type not in ("variable_assignment", "concatenation"):
        return False
    ends = [child.end_byte for child in node.children[:-1]]
    return ends != [child.start_byte for child in node.children[1:]]


def touches(pair: Sequence["Node"]) -> bool:
    return len(pair) == 2 and pair[0].type == "{" and pair[0].end_byte == pair[1].start_byte


def parent_type(node: "Node") -> str:
    return "" if node.parent is None else node.parent.type


def text(node: "Node") -> str:
    return (node.text or b"").decode()
