"""A tokenizer of the server's own: simple, always the same, and behind every number it gives.

It is nobody's real one. It costs about one token for 3.3 characters of prose, fewer of digits and
punctuation, and one for each letter of a script it was not made for: as small models do.
"""

import re
from zlib import crc32

PIECE = re.compile(r"<\|\w+\|>| ?[A-Za-z]{1,6}|\d|[^\W\d]|_|\s{1,8}|[^\w\s]")
VOCABULARY = 50_000


def pieces(text: str) -> list[str]:
    """The tokens of `text` as they are written; joined they are `text` again."""
    return PIECE.findall(text)


def count(text: str) -> int:
    return len(pieces(text))


def numbers(text: str) -> list[int]:
    """The tokens of `text` as a model would see them."""
    return [crc32(piece.encode("utf-8", "surrogatepass")) % VOCABULARY for piece in pieces(text)]
