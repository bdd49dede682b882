"""What a server answers to a call, made into what our tools return.

A result that breaks the server's own promise about its shape is passed on all the same: the call
has been made, and whoever reads it is told.
"""

import json
from base64 import b64decode
from typing import TYPE_CHECKING

from holdfast.core.jsontext import dumped
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
        texts.append(dumped(structured))
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
    """Whether a text already holds it, as the protocol asks of servers; twice costs tokens."""
    # Many servers wrap a plain text or value: {"result": ...}, {"content": ...}.
    alone = structured
    if isinstance(structured, dict) and len(structured) == 1:
        (alone,) = structured.values()
    if isinstance(alone, str) and alone == "\n".join(texts):
        return True
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if value in (structured, alone):
            return True
    return False


def mismatch(structured: object, schema: dict[str, object]) -> list[str]:
    """A line that says how a result breaks the promise; none if it keeps it."""
    if structured is None:
        return ["[The server promised structured content with this tool and sent none.]"]
    try:
        problems = Book(schema).problems(structured)
    except ValueError:
        return []  # the promise itself is broken; that tells nothing about the result
    return [f"[The result is not what the server promised: {one}]" for one in problems[:1]]
