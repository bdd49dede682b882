"""A line of shell as the simple commands in it, read with the grammar of tree-sitter.

Only the shape is told here: words, redirections, what feeds what. What the commands would do is for
`commands` to say. Where the grammar and bash could disagree, nothing is told at all: `Unreadable`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from holdfast.tools.bash.doubts import doubts
from holdfast.tools.bash.words import EXPANDS, UNKNOWN, Unreadable, Word, descendants, text, word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

DEEPEST = 60
"""Levels of nesting in one command; nobody writes more, and the reading is recursive."""
LONGEST = 20_000
"""Characters of one command: a longer one belongs into a file, and reading it takes its time."""
ARGUMENTS = EXPANDS | {
    "word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation",
    "number", "variable_assignment", "variable_name", "array", "regex", "extglob_pattern",
    "arithmetic_expansion", "test_operator",
}  # fmt: skip
MOST = 8_000
"""Pieces of one command. It is read while everything else waits."""


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
    source = command.encode()
    root = parser().parse(source).root_node
    if root.has_error:
        raise Unreadable("it is not complete, or not written as bash would have it")
    if root.descendant_count > MOST:
        raise Unreadable("it is made of too many pieces")
    for why in doubts(command, source, root):
        raise Unreadable(why)
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
        extra = (*lost(node), *extra)
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


def lost(node: "Node") -> Iterator[Word]:
    """The grammar has no place for the `-` of `python - <<END`."""
    body = node.child_by_field_name("body")
    after = [child.start_byte for child in node.children if child.type.endswith("redirect")]
    if body is None or not after:
        return
    between = (node.text or b"")[body.end_byte - node.start_byte : after[0] - node.start_byte]
    if between.strip() == b"-":
        yield Word("-", "-")


def heredoc(node: "Node") -> Word:
    body = next((c for c in node.children if c.type == "heredoc_body"), None)
    if body is None:
        return Word("", "")
    # In an open document a backslash takes the next character as it is, which changes the text.
    plain = is_quoted(node) or "\\" not in text(body)
    plain = plain and not any(child.type in EXPANDS for child in descendants(body))
    return Word(text(body), text(body) if plain else None)


def is_quoted(node: "Node") -> bool:
    start = next((c for c in node.children if c.type == "heredoc_start"), None)
    return start is not None and not text(start).isidentifier()


def assignment(node: "Node") -> tuple[str, Word]:
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    if name is None:
        raise Unreadable("it assigns to something without a name")
    return text(name), Word("", "") if value is None else word(value)


def touches(pair: Sequence["Node"]) -> bool:
    return len(pair) == 2 and pair[0].type == "{" and pair[0].end_byte == pair[1].start_byte


def parent_type(node: "Node") -> str:
    return "" if node.parent is None else node.parent.type
