"""Arguments that are almost JSON, mended by rules.

What is mended here will be run, so a wrong guess is far worse than asking the model again: what
has two readings is refused, and no value is ever completed. `{"index": 7` may have been 71.
Whether the arguments fit their tool is the tool's business; where calls stand in a text is
`dialects`, which reads JSON with the same reader.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.core.jsontext import DEEPEST, dumped, json_object

SPACE = re.compile(r"(?:[ \t\n\r]+|([\s\u180e\u200b\ufeff])|((?://|#)[^\n]*\n|/\*.*?\*/))*", re.S)
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
SOLID = re.compile(r"[^\s,:{}\[\]()\"'/#]+")
DOUBLED = re.compile(r"\{[ \t\n\r]*\{")
WORD = re.compile(r"[A-Za-z_$][\w$-]*")


def closed_by(quotes: str) -> re.Pattern[str]:
    return re.compile(rf"([^{quotes}\\]*(?:\\.[^{quotes}\\]*)*)[{quotes}]", re.DOTALL)


# A typographic string ends at the first quote of any shape: what then follows shows if it did.
QUOTES = {
    '"': (closed_by('"'), ""),
    "'": (closed_by("'"), "single quotes"),
    **dict.fromkeys("“”„", (closed_by('“”„"'), "typographic quotes")),
    **dict.fromkeys("‘’", (closed_by("‘’'"), "typographic quotes")),
}
RAW_QUOTES = ('<|"|>', "<escape>")
"""Gemma's own: what stands between two of them is text as it is."""
ODD = re.compile(r'\\(?:u[0-9a-fA-F]{4}|.)|["\x00-\x1f]', re.DOTALL)
AFTER_EMPTY = re.compile(r"""\s*[,}\]]|\s+["'/#]""")
"""What follows `""` if it is an empty string, and not a quote written twice."""
ONLY_CLOSERS = re.compile(r"[\s}\]]*\Z")
PYTHONIC = {"True": "true", "False": "false", "None": "null"}
LITERALS = {"true": "true", "false": "false", "null": "null", **PYTHONIC}
WHOLE = ("}", "]", *QUOTES, *LITERALS)
"""How a text can end whose last value is complete. A digit is not among them."""
OPENING_FENCE = re.compile(r"```[ \t]*\w*\s*")
LAST_FENCE = re.compile(OPENING_FENCE.pattern + r"\Z")
PROSE = re.compile(r"""[^{}\[\]()"=<>\\|]*""")
"""Text in which no other part of the arguments can hide."""


@dataclass(frozen=True, slots=True)
class Repaired:
    arguments: str
    """The text of a strict JSON object."""
    fixes: tuple[str, ...] = ()
    """What was mended, in words for people."""


@dataclass(frozen=True, slots=True)
class Found:
    """A JSON value that stands in a text."""

    json: str
    end: int
    fixes: tuple[str, ...] = ()
    members: tuple[tuple[str, str], ...] = ()
    """Keys of an object, with the values as JSON."""
    items: tuple[str, ...] = ()


class Unclear(ValueError):
    """No reading, or more than one. `cut`: the text ended where more had to come."""

    def __init__(self, at: int, *, cut: bool = False, why: str = "") -> None:
        super().__init__(why or f"unclear at character {at}")
        self.at, self.cut, self.why = at, cut, why


def repaired(text: str) -> Repaired | None:
    """The one JSON object that `text` can mean, or None."""
    try:
        json_object(text)
        return Repaired(text)
    except ValueError:
        pass
    bare = text.strip()
    try:
        if bare.startswith(('"', '{\\"')):
            return from_string(bare)
        mended = in_text(bare)
        json_object(mended.arguments)
    except ValueError:
        return None
    return mended


def found(text: str, start: int) -> Found:
    """The value that begins at `start`, up to its own end; `Unclear` if there is none."""
    return Reader(text, start, len(text)).found()


def found_before(text: str, start: int, end: int) -> Found:
    """The same where something else shows the end of it: closing brackets may be missing there."""
    return Reader(text, start, start + len(text[start:end].rstrip(" \t\n\r")), bounded=True).found()


def from_string(bare: str) -> Repaired | None:
    """The object in a JSON string; also where the string's own quotes were lost."""
    inner = json.loads(bare if bare.startswith('"') else f'"{bare}"')
    mended = repaired(inner) if isinstance(inner, str) else None
    return mended and Repaired(mended.arguments, ("an object written as a string", *mended.fixes))


def in_text(bare: str) -> Repaired:
    around: list[str] = []
    if (fence := OPENING_FENCE.match(bare)) and bare.endswith("```"):
        around.append("a code fence around the object")
        bare = bare[fence.end() : -3].strip()
    start = bare.find("{")
    value = found_before(bare, max(start, 0), len(bare))
    before, after = bare[: max(start, 0)], bare[value.end :]
    if after and ONLY_CLOSERS.match(after):
        around.append("closing brackets too many")
        after = ""
    if before or after:
        around.append("text around the object")
    if not (introduces(before) and follows(after)):
        raise Unclear(value.end)
    return Repaired(value.json, (*value.fixes, *around))


def introduces(before: str) -> bool:
    """Whether this only speaks of the object: `limit: {"a": 1}` may have lost its braces."""
    before = LAST_FENCE.sub("", before)
    if PROSE.fullmatch(before) is None or re.search(r"[\w-]\Z", before):
        return False
    return before.count(":") <= (before.rstrip().endswith(":") and len(before.split()) > 2)


def follows(after: str) -> bool:
    bare = after.lstrip()
    if after[:1].isalnum() or bare.startswith((",", ":", "-", "+", ".")):
        return False
    return PROSE.fullmatch(bare.removeprefix("```")) is not None


class Reader:
    """Reads one value and stops behind it. All reading is from left to right and once."""

    def __init__(self, text: str, at: int, end: int, *, bounded: bool = False) -> None:
        self.text, self.at, self.end, self.bounded = text, at, end, bounded
        self.fixes: dict[str, None] = {}
        self.members: tuple[tuple[str, str], ...] = ()
        self.items: tuple[str, ...] = ()

    def found(self) -> Found:
        value = self.value(0)
        # The outermost list or object is the last to be complete: what it left here is its own.
        members = self.members if value[0] == "{" else ()
        items = self.items if value[0] == "[" else ()
        return Found(value, self.at, tuple(filter(None, self.fixes)), members, items)

    def fix(self, what: str) -> None:
        self.fixes[what] = None

    def unclear(self) -> Unclear:
        return Unclear(self.at, cut=self.at >= self.end)

    def next(self) -> str:
        return self.text[self.at] if self.at < self.end else ""

    def skip(self) -> None:
        if space := SPACE.match(self.text, self.at, self.end):
            self.at = space.end()
            self.fix("unusual spaces" if space[1] else "")
            self.fix("comments" if space[2] else "")

    def value(self, depth: int) -> str:
        if depth > DEEPEST:
            raise Unclear(self.at)
        if (first := self.next()) == "{":
            return self.an_object(depth)
        if first == "[":
            items = self.parts("]", lambda: self.value(depth + 1))
            self.items = tuple(items)
            return f"[{','.join(items)}]"
        if self.at_quote():
            return self.string()
        word = SOLID.match(self.text, self.at, self.end)
        if word is None or not (NUMBER.fullmatch(word[0]) or word[0] in LITERALS):
            raise Unclear(self.at, cut=(word.end() if word else self.at) == self.end)
        self.at = word.end()
        self.fix("True, False or None as in Python" if word[0] in PYTHONIC else "")
        return LITERALS.get(word[0], word[0])

    def an_object(self, depth: int) -> str:
        if DOUBLED.match(self.text, self.at, self.end):
            # No object begins with a brace: both pairs are one.
            self.fix("doubled braces")
            inner = self.parts("}", lambda: self.value(depth + 1))
            if len(inner) > 1:
                raise Unclear(self.at)
            return inner[0]
        keys: list[str] = []
        members: dict[str, str] = {}

        def member() -> str:
            keys.append(self.key())
            name = json.loads(keys[-1])
            if name in members:
                raise Unclear(self.at)
            self.skip()
            if self.next() != ":":
                raise self.unclear()
            self.at += 1
            self.skip()
            return members.setdefault(name, self.after_colon(depth + 1))

        values = self.parts("}", member)
        self.members = tuple(members.items())
        return f"{{{','.join(map(':'.join, zip(keys, values, strict=True)))}}}"

    def parts(self, closer: str, part: Callable[[], str]) -> list[str]:
        """What stands between the brackets, from the opening one on."""
        self.at += 1
        parts: list[str] = []
        comma = False
        while True:
            self.skip()
            if self.closes(closer, parts[-1] if parts else "", after_comma=comma):
                return parts
            if parts and not comma:
                self.go_without_comma(closer, parts[-1])
            parts.append(part())
            self.skip()
            if comma := self.next() == ",":
                self.at += 1

    def closes(self, closer: str, last: str, *, after_comma: bool) -> bool:
        """Whether a list or object ends here; brackets may be missing only at the very end."""
        if self.next() == closer:
            self.at += 1
            self.fix("a trailing comma" if after_comma else "")
            return True
        if not self.bounded or ONLY_CLOSERS.match(self.text, self.at, self.end) is None:
            return False
        if not last or after_comma:
            raise self.unclear()
        # Nothing shows that a list was to end, nor a number: both may have gone on.
        if self.at == self.end and (closer == "]" or not self.text.endswith(WHOLE, 0, self.end)):
            raise self.unclear()
        self.fix("missing closing brackets")
        return True

    def go_without_comma(self, closer: str, last: str) -> None:
        """A comma may be missing before a key in quotes, and between two lists or objects.
        Not elsewhere: `["a" "b"]` is one string in some languages."""
        apart = last[-1] in "]}" or self.text[self.at - 1] in " \t\n\r/"
        clear = self.next() in QUOTES if closer == "}" else last[-1] + self.next() in ("}{", "][")
        if not (apart and clear and self.next()):
            raise self.unclear()
        self.fix("a missing comma")

    def key(self) -> str:
        if self.at_quote():
            return self.string()
        word = WORD.match(self.text, self.at, self.end)
        if word is None or word[0] in LITERALS:
            raise self.unclear()
        self.at = word.end()
        self.fix("a key without quotes")
        return f'"{word[0]}"'

    def after_colon(self, depth: int) -> str:
        twice = self.text.startswith('""', self.at, self.end)
        if twice and AFTER_EMPTY.match(self.text, self.at + 2, self.end) is None:
            self.at += 1
            self.fix("a doubled quote at the start of a string")
        return self.value(depth)

    def at_quote(self) -> bool:
        return self.next() in QUOTES or self.text.startswith(RAW_QUOTES, self.at, self.end)

    def string(self) -> str:
        for quote in RAW_QUOTES:
            if self.text.startswith(quote, self.at, self.end):
                return self.raw_string(quote)
        shape, fix = QUOTES[self.next()]
        string = shape.match(self.text, self.at + 1, self.end)
        if string is None:
            raise Unclear(self.at, cut=True)
        self.fix(fix)
        body = ODD.sub(self.escaped, string[1])
        self.at = string.end()
        return f'"{body}"'

    def raw_string(self, quote: str) -> str:
        start = self.at + len(quote)
        end = self.text.find(quote, start, self.end)
        if end < 0:
            raise Unclear(self.at, cut=True)
        self.at = end + len(quote)
        self.fix("Gemma's quotes")
        return dumped(self.text[start:end])

    def escaped(self, odd: re.Match[str]) -> str:
        if odd[0] == '"':
            return '\\"'
        if odd[0] == "\\'":
            self.fix("an escaped apostrophe")
            return "'"
        if odd[0][0] != "\\":
            self.fix("control characters in a string")
            return json.dumps(odd[0])[1:-1]
        if len(odd[0]) == 2 and odd[0][1] not in '"\\/bfnrt':
            raise Unclear(self.at)  # `\d`: a backslash too few, or one too many
        return odd[0]
