"""Thoughts that a server left in the text of a reply, parted from the answer.

`Apart` does it piece by piece, as the text comes. It can only know what is marked at the beginning.
Where the server's template has opened the block already, the text begins in the middle of a
thought, and nothing says so before its end: such a thought is told as a part of the answer, and
`unopened` finds it when the text is whole, so that the reply is right in any case. Tags that stand
in the middle of an answer are the answer's own.
"""

import re
from collections.abc import Iterator, Mapping

from holdfast.models.base import Said, Thought

BLOCKS: Mapping[str, str] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "<mm:think>": "</mm:think>",  # MiniMax M3
    "[THINK]": "[/THINK]",  # Magistral
    "<|channel>thought": "<channel|>",  # Gemma 4
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command A
    "<|begin_of_thought|>": "<|end_of_thought|>",  # Sky-T1
    "◁think▷": "◁/think▷",  # Kimi-VL
}
"""How a thought begins, and how it ends."""
MOST_BLANK = 64
"""Blanks before a block; a text with more of them is an answer."""

# gpt-oss puts each message under a header: `<|start|>assistant<|channel|>analysis<|message|>`
MESSAGES = ("<|start|>", "<|channel|>")
HEADER = re.compile(
    r"""(?=<\|(?:start|channel)\|>) (?:<\|start\|>assistant[^<\n]{0,60})?
    (?:<\|channel\|>(?P<channel>\w{1,20})[^<\n]{0,60})? (?:<\|constrain\|>\w{0,20}[ ]?)?
    <\|message\|>""",
    re.VERBOSE,
)
LONGEST_HEADER = 250
MESSAGE_ENDS = ("<|end|>", "<|return|>", "<|call|>")
FIRST_OF_MARKS = {"", *(mark[0] for mark in (*BLOCKS, *BLOCKS.values(), *MESSAGES))}
"""What a part may begin with; nothing at all, if it has not come yet. Most answers end it here."""
BLANK = re.compile(r"\s*")


class Part:
    """A stretch of the reply."""

    def __init__(self, *ends: str, is_thought: bool = False, is_call: bool = False) -> None:
        """`ends`: the marks of which the first ends it; without any it is all the rest.
        `is_call`: it keeps its marks, for whoever reads the call."""
        self.ends = re.compile("|".join(map(re.escape, ends))) if ends else None
        self.marks = ends
        self.is_thought = is_thought
        self.is_call = is_call

    def told(self, text: str) -> Said | Thought:
        return Thought(text, "think") if self.is_thought else Said(text)


ANSWER = Part()
THOUGHTS = {opener: Part(closer, is_thought=True) for opener, closer in BLOCKS.items()}
ANALYSIS = Part(*MESSAGE_ENDS, *MESSAGES, is_thought=True)
MESSAGE = Part(*MESSAGE_ENDS, *MESSAGES)
CALL = Part(*MESSAGE_ENDS, is_call=True)


class Apart:
    """Parts the thoughts that begin a text from the answer after them."""

    def __init__(self) -> None:
        self.found = False
        """Whether the text marks what is a thought and what is not."""
        self._part: Part | None = None
        self._held = ""

    @property
    def thinking(self) -> bool:
        return self._part is not None and self._part.is_thought

    def feed(self, text: str) -> Iterator[Said | Thought]:
        text, self._held = self._held + text, ""
        at = 0
        while at < len(text):
            if self._part is None:
                at = self._begin(text, at)
            if (part := self._part) is None:
                self._held = text[at:]
                return
            over = part.ends.search(text, at) if part.ends else None
            end = over.start() if over else len(text) - len(beginning_of(part.marks, text, at))
            if over and part.is_call:
                end = over.end()
            if end > at:
                yield part.told(text[at:end])
            if over is None:
                self._held = text[end:]
                return
            at = over.start() if over[0] in MESSAGES else over.end()
            self._part = None

    def end(self) -> Iterator[Said | Thought]:
        """What was held back, in case it was the beginning of a mark."""
        if held := self._held:
            self._held, self._part = "", self._part or ANSWER
            yield self._part.told(held)

    def _begin(self, text: str, at: int) -> int:
        """Where the part that begins here has its text, if it is known already which one it is."""
        start = past_blanks(text, at)
        at = start if self.found else at
        if start - at <= MOST_BLANK and text[start : start + 1] in FIRST_OF_MARKS:
            for opener, closer in BLOCKS.items():
                if text.startswith(opener, start):
                    self.found, self._part = True, THOUGHTS[opener]
                    return start + len(opener)
                if text.startswith(closer, start) and not self.found:  # of an empty thought
                    self.found = True
                    return self._begin(text, start + len(closer))
            if header := HEADER.match(text, start):
                self.found, self._part = True, message_under(header)
                return start if self._part is CALL else header.end()
            if may_begin(text[start : start + LONGEST_HEADER]):
                return at
        self._part = ANSWER
        return at


def past_blanks(text: str, at: int) -> int:
    blank = BLANK.match(text, at)
    return blank.end() if blank else at


def may_begin(start: str) -> bool:
    """Whether this may still become the mark of a part."""
    if start.startswith(MESSAGES):
        return len(start) < LONGEST_HEADER and "<|message|>" not in start
    return any(mark.startswith(start) for mark in (*BLOCKS, *BLOCKS.values(), *MESSAGES))


def message_under(header: re.Match[str]) -> Part:
    if " to=" in header[0]:
        return CALL
    return ANALYSIS if header["channel"] == "analysis" else MESSAGE


def beginning_of(marks: tuple[str, ...], text: str, at: int) -> str:
    """The end of `text` that may be the beginning of one of the marks."""
    longest = ""
    for mark in marks:
        start = text.rfind(mark[0], max(at, len(text) - len(mark) + 1))
        if start >= 0 and mark.startswith(text[start:]):
            longest = max(longest, text[start:], key=len)
    return longest


# --- thoughts without their beginning -------------------------------------------------------

ENDS = "|".join(map(re.escape, BLOCKS.values()))
WORTH_A_LOOK = re.compile(
    rf"""^[ \t]*(?P<fence>`{{3,}}|~{{3,}}) | `[^`\n]*` | (?P<opens>{"|".join(map(re.escape, BLOCKS))})
    | (?<!["'])(?P<closes>{ENDS}|<\|end\|>(?=<\|start\|>assistant))""",
    re.VERBOSE | re.MULTILINE,
)
FIRST_OF_ENDS = {end[0] for end in (*BLOCKS.values(), *MESSAGE_ENDS)}
MENTIONED = re.compile(r"[,.;:?)]|!(?!\[)")
"""What follows a tag that is spoken of."""
IN_A_SENTENCE = re.compile(r"[\w,][ \t]+\Z"), re.compile(r"[ \t]+[a-z]")
WITHOUT_TOKENS = re.compile(r"analysis(?=[A-Z])(.*?)assistantfinal(?=\S)", re.DOTALL)
"""What is left of gpt-oss's headers where a server throws its special tokens away."""


def unopened(text: str) -> tuple[str, str]:
    """The thought that a text begins in the middle of, and the answer after it.

    No thought is found where one is marked, nor where a tag only stands in code or in a sentence.
    """
    if bare := WITHOUT_TOKENS.match(text):
        return bare[1], text[bare.end() :].lstrip()
    if not any(first in text for first in FIRST_OF_ENDS):  # most answers have none of them
        return "", text
    fence = ""
    for mark in WORTH_A_LOOK.finditer(text):
        if ticks := mark["fence"]:
            fence = "" if fence and ticks.startswith(fence) else fence or ticks
        elif fence:
            continue
        elif mark["opens"]:
            break
        elif mark["closes"] and not is_spoken_of(text, mark):
            rest = Apart()
            rest.found = True
            said = [*rest.feed(text[mark.end() :]), *rest.end()]
            thoughts = [each.text for each in said if isinstance(each, Thought)]
            answer = [each.text for each in said if isinstance(each, Said)]
            return "".join((text[: mark.start()], *thoughts)), "".join(answer)
    return "", text


def is_spoken_of(text: str, tag: re.Match[str]) -> bool:
    before, after = IN_A_SENTENCE
    is_within = before.search(text, max(tag.start() - 99, 0), tag.start()) is not None
    goes_on = after.match(text, tag.end()) is not None
    return MENTIONED.match(text, tag.end()) is not None or is_within and goes_on
