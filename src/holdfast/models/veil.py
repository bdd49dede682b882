"""What of a reply may be shown while it comes: all but what may be a call written as text.

People should not see raw JSON flash by that is a call and no answer. So text is held back from the
place where a call may begin (`marks`) until it is clear that none does there. Whether one did is
for `dialects` to say when the reply is whole. What is given back, put together, is always the text.
"""

import re
from typing import Protocol

from holdfast.models import marks
from holdfast.models.asked import ARGUMENT_KEYS, EXPLICIT_TYPES, WRAPPERS

BEGUN = "|".join(style.begun for style in marks.STYLES.values())
SUSPECT = marks.pattern(
    rf"(?={marks.FIRST}|\s)(?:(?P<unfinished>(?:\s{{1,99}}+|{BEGUN})\Z)|{marks.MARK.pattern})"
)
"""The beginning of a call, or at the end of the text what may become one. Blanks are held back too:
those before a call are not worth showing."""
IN_A_FENCE = marks.pattern(rf"\s{{0,99}}+(?:(?P<empty>\Z)|[{{\[]|{SUSPECT.pattern})")
"""How a fence goes on if it may hold a call."""

KEYS, TYPES = "|".join((*ARGUMENT_KEYS, *WRAPPERS)), "|".join((*EXPLICIT_TYPES, "final"))
MARKS = "|".join(
    style.mark for name, style in marks.STYLES.items() if name not in ("fence", "think", "bare")
)
ASKS = marks.pattern(rf"""(?:{KEYS})["'”]?\s{{0,99}}: | ["'“](?:{TYPES})["'”] | {MARKS}""")
"""What a block must hold to be a call, whatever the tools are called."""
ASKS_OR_FENCE = marks.pattern(rf"`{{3}} | ~{{3}} | {ASKS.pattern}")
MOST_BLANK = 99
"""Blanks that are held back before the beginning of a call."""
PIECE = 1_000
"""Characters that are looked at together: each block in them copies what is behind it."""


class Block(Protocol):
    """Text that stands together: all of it is shown, or nothing."""

    asks: re.Pattern[str]
    """What is in it if it may be a call."""

    def end_in(self, text: str) -> int:
        """Where it ends in the next piece of its text; -1 if it goes on."""


class Fenced:
    """A fenced block, from behind its opening line's ticks and language."""

    asks = ASKS

    def __init__(self, ticks: str) -> None:
        self._ticks = ticks
        self._close = re.compile(rf"\n[ \t]{{0,99}}{ticks}")
        self._keep = len(ticks) + 100
        self._in_first_line = True
        self._tail = ""

    def end_in(self, text: str) -> int:
        whole, before = self._tail + text, len(self._tail)
        if self._in_first_line:
            first, newline, _ = whole.partition("\n")
            if (inline := first.find(self._ticks)) >= 0:
                return inline + len(self._ticks) - before
            self._in_first_line = not newline
        if close := self._close.search(whole):
            return close.end() - before
        self._tail = whole[-self._keep :]
        return -1


class Lines:
    """Lines up to the one that closes as many brackets as were opened."""

    asks = ASKS_OR_FENCE

    def __init__(self) -> None:
        self._open = 0

    def end_in(self, text: str) -> int:
        end = 0
        for line in text.splitlines(keepends=True):
            end += len(line)
            self._open += line.count("{") + line.count("[") - line.count("}") - line.count("]")
            if self._open <= 0 and line.endswith("\n"):
                return end
        return -1


class Veil:
    """Fed a text as it comes, gives back what may be shown of it now."""

    def __init__(self) -> None:
        self._last = "\n"  # the last character that was shown: some marks begin a line
        self._held: list[str] = []
        self._block: Block | None = None
        self._is_example = self._may_be_call = False

    def feed(self, text: str) -> str:
        shown: list[str] = []
        for start in range(0, len(text), PIECE):
            piece = text[start : start + PIECE]
            while piece and not self._may_be_call:
                if self._block:
                    piece = self._in_block(self._block, piece, shown)
                else:
                    piece = self._in_prose(piece, shown)
            if piece:
                self._held.append(piece)
        return "".join(shown)

    def end(self) -> str:
        """The rest, whatever it is."""
        rest = "".join(self._held)
        self._held.clear()
        return rest

    def _show(self, text: str, shown: list[str]) -> None:
        if text:
            shown.append(text)
            self._last = text[-1]

    def _in_prose(self, text: str, shown: list[str]) -> str:
        """Show the text up to where a call may begin; what is left of it is still to be read."""
        text = "".join((self._last, *self._held, text))
        self._held.clear()
        mark = SUSPECT.search(text, 1)
        while mark and mark.lastgroup == "think":
            mark = SUSPECT.search(text, mark.end())
        if mark is None:
            self._show(text[1:], shown)
            return ""
        kind = fence_at(mark, text) if mark.lastgroup == "fence" else mark.lastgroup
        self._is_example = kind == "example"
        start = mark.end() if self._is_example else before_blanks(text, mark.start())
        self._show(text[1:start], shown)
        if kind in ("example", "block", "bare"):
            self._block = Lines() if kind == "bare" else Fenced(mark["ticks"])
            self._held.append(text[start : mark.end()])
            return text[mark.end() :]
        self._held.append(text[start:])
        self._may_be_call = kind != "unfinished"
        return ""

    def _in_block(self, block: Block, text: str, shown: list[str]) -> str:
        """The same up to the end of the block."""
        end = block.end_in(text)
        is_over = end >= 0
        part, rest = (text[:end], text[end:]) if is_over else (text, "")
        self._held.append(part)
        if self._is_example or is_over:
            held = "".join(self._held)
            self._may_be_call = not self._is_example and block.asks.search(held) is not None
            if not self._may_be_call:
                self._held.clear()
                self._show(held, shown)
        if is_over:
            self._block = None
        return rest


def before_blanks(text: str, mark: int) -> int:
    """The place where the blanks before a mark begin, if they are not many."""
    if text[mark : mark + 1].isspace():
        return mark
    most = max(mark - MOST_BLANK, 1)
    return most + len(text[most:mark].rstrip())


def fence_at(mark: re.Match[str], text: str) -> str:
    """Whether the fence at the mark is a call, an example, or a block that may be either."""
    language = mark["language"].lower()
    if language in marks.CALL_FENCES:
        return "call"
    within = IN_A_FENCE.match(text, mark.end()) if language in marks.FENCES else None
    if within is None:
        return "example"
    is_open = within["empty"] is not None or within["unfinished"] is not None
    return "unfinished" if is_open else "block"
