"""What is found by its words: which texts of a log are searched, and how a query is read.

Chinese, Japanese, Korean and Thai are not written with spaces between the words, so each of their
characters counts as a word, and a row of them is looked for as a row. Of a query nothing is taken
for syntax: every word in it must occur, and the last may be the beginning of one.
"""

import re

from holdfast.core.events import Event, ModelReplied, RunStopped, UserSpoke
from holdfast.core.limits import StopReason
from holdfast.core.messages import clean

MOST = 100_000
"""Characters of one text that are searched: a pasted file is rarely looked for by its end."""
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
EACH = re.compile(f"([{UNSPACED}])")
BETWEEN = re.compile(f"(?<=[{UNSPACED}«»]) (?=[{UNSPACED}«»])")
WORD = re.compile(r"[^\W_]+")
OPEN, CLOSE = "\x02", "\x03"


def said(event: Event) -> str:
    """What a person would look for in it; else empty."""
    match event:
        case UserSpoke(text):
            return text
        case ModelReplied(reply=reply):
            return reply.text
        case RunStopped(reason, text) if reason is not StopReason.ANSWERED:
            return text  # an answer was said by the model already
        case _:
            return ""


def spaced(text: str) -> str:
    """As the index keeps it."""
    return EACH.sub(r" \1 ", clean(text[:MOST])).replace("  ", " ")


def query(text: str) -> str:
    """In the language of the index; empty if there is no word in `text`."""
    words = []
    for word in clean(text).split():
        parts = WORD.findall(EACH.sub(r" \1 ", word))
        if parts:
            words.append('"' + " ".join(parts) + '"')
    if not words:
        return ""
    last_is_open = not EACH.search(text[-1])
    return " ".join(words) + ("*" if last_is_open else "")


def excerpt(marked: str) -> str:
    """The words around a match, as people write them."""
    one_line = " ".join(marked.split())
    return BETWEEN.sub("", BETWEEN.sub("", one_line.replace(OPEN, "«").replace(CLOSE, "»")))


# --- without an index -----------------------------------------------------------------------


def plain_words(text: str) -> list[str]:
    """The words of a query, each as it must occur."""
    return [
        part for word in clean(text).casefold().split() if (part := "".join(WORD.findall(word)))
    ]


def marked(text: str, words: list[str]) -> str:
    """The text around the first of the words, marked; empty if one of them does not occur."""
    folded = text.casefold()
    if not text or not all(word in folded for word in words):
        return ""
    at, length = folded.index(words[0]), len(words[0])
    before, match = text[max(0, at - 60) : at], text[at : at + length]
    return " ".join(f"{before}«{match}»{text[at + length : at + length + 60]}".split())
