"""What a server answers to a call, made into what our tools return.

A result that breaks the server's own promise about its shape is passed on all the same: the call
has been made, and whoever reads it is told.
"""

from base64 import b64decode
from typing import TYPE_CHECKING

from holdfast.core.jsontext import STRICT, dumped, parsed
from holdfast.tools.base import Binary, Output
from holdfast.tools.schema import Book

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


def output(result: "CallToolResult", schema: dict[str, object] | None) -> Output:
    """`schema` is what the server promised of the structured content."""
    texts: list[str] = []
    binaries: list[Binary] = []
    for block in result.content:
        part = read(block)
        if isinstance(part, Binary):
            binaries.append(part)
        else:
            texts.append(part)
    structured = result.structured_content
    if structured is not None and not is_said(structured, texts):
        texts.append(written(structured))
    if schema is not None and not result.is_error:
        texts += mismatch(structured, schema)
    text = "\n".join(text for text in texts if text)
    return Output(text, tuple(binaries), failed=result.is_error)


def read(block: "ContentBlock") -> str | Binary:
    from mcp import types

    match block:
        case types.TextContent(text=text):
            return text
        case types.ImageContent(data=data, mime_type=media):
            return binary(data, media, "")
        case types.AudioContent(data=data, mime_type=media):
            return binary(data, media, "")
        case types.ResourceLink(uri=uri, name=name, description=about):
            return f"[{name}]({uri})" + (f" {about}" if about else "")
        case types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, text=text)):
            return f"{uri}:\n{text}"
        case types.EmbeddedResource(resource=types.BlobResourceContents() as blob):
            return binary(blob.blob, blob.mime_type or "", blob.uri)
        case _:
            return dumped(block.model_dump(by_alias=True, mode="json", exclude_none=True))


def binary(data: str, media: str, name: str) -> Binary | str:
    try:
        whole = b64decode(data, validate=True)
    except ValueError:
        return f"[{media or 'Data'} that is not base64: {len(data)} characters]"
    return Binary(whole, media or "application/octet-stream", name)


def is_said(structured: object, texts: list[str]) -> bool:
    """Whether the texts already hold it, as the protocol asks of servers; twice costs tokens."""
    # Many servers wrap a plain text or value: {"result": ...}, {"content": ...}.
    alone = structured
    if isinstance(structured, dict) and len(structured) == 1:
        (alone,) = structured.values()
    if alone == "\n".join(texts) or any(says(text, (structured, alone)) for text in texts):
        return True
    # And of a list each item is often a text of its own.
    if not isinstance(alone, list) or not alone or len(alone) != len(texts):
        return False
    return all(item == text or says(text, (item,)) for item, text in zip(alone, texts, strict=True))


def says(text: str, values: tuple[object, ...]) -> bool:
    """It is one of these values, as JSON."""
    try:
        return parsed(text, STRICT) in values
    except (ValueError, RecursionError):
        return False


def written(structured: object) -> str:
    try:
        return dumped(structured)
    except (ValueError, RecursionError):
        return "[The structured content is nested too deeply to be shown.]"


def mismatch(structured: object, schema: dict[str, object]) -> list[str]:
    """A line that says how a result breaks the promise; none if it keeps it."""
    if structured is None:
        return ["[The server promised structured content with this tool and sent none.]"]
    try:
        problems = Book(schema).problems(structured)
    except (ValueError, RecursionError):
        return []  # the promise itself is broken, or the result too large to be held against it
    return [f"[The result is not what the server promised: {one}]" for one in problems[:1]]
