"""Bytes as text and back, so that what an edit did not mean stays as it was, byte for byte."""

import codecs
from dataclasses import dataclass

from holdfast.tools.base import ToolError

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SNIFFED = 8_192
"""Bytes in which a NUL is looked for: text has none."""
IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass(frozen=True, slots=True)
class Form:
    """How a text is put into bytes."""

    encoding: str = "utf-8"
    mark: bytes = b""
    """The byte order mark it begins with."""
    newline: str = "\n"
    """How most of its lines end."""

    def encoded(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding)


PLAIN = Form()


def marked(start: bytes) -> Form:
    """The form that the first bytes of a file show."""
    for mark, encoding in MARKS:
        if start.startswith(mark):
            return Form(encoding, mark)
    return PLAIN


def is_binary(start: bytes) -> bool:
    return not marked(start).mark and b"\0" in start[:SNIFFED]


def image(start: bytes) -> str:
    """The media type of an image; empty if it is none that people can be shown."""
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in IMAGES if start.startswith(magic)), "")


def decoded(content: bytes) -> tuple[str, Form]:
    """The text, with its line ends as they are; Latin-1 if it is nothing else, since that gives
    back every byte."""
    form = marked(content)
    body = content[len(form.mark) :]
    try:
        text, encoding = body.decode(form.encoding), form.encoding
    except UnicodeDecodeError:
        if form.encoding != "utf-8":
            raise ToolError("It begins like UTF-16 but is not: it cannot be shown.") from None
        text, encoding = body.decode("latin-1"), "latin-1"
    crlf = text.count("\r\n")
    newline = "\r\n" if crlf * 2 > text.count("\n") else "\n"
    return text, Form(encoding, form.mark, newline)


def lines_in(text: str) -> int:
    """Lines as an editor counts them: the last one need not end."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
