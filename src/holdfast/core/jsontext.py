"""JSON as text, in and out: strict where a server will read it, lenient where we only look."""

import json
import re

from holdfast.core.messages import clean

NOTICE = "[... truncated: showing "
"""How the line begins that `cut` leaves; what stands before it may be JSON without its end."""
DEEPEST = 60
"""Levels of JSON we parse: far from the interpreter's own limit, which varies with the caller."""


def refused(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


STRICT = json.JSONDecoder(parse_constant=refused)
AS_WRITTEN = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|[\[\]{},]', re.DOTALL)


def json_object(text: str) -> dict[str, object]:
    value = parsed(text, STRICT)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def json_in(text: str) -> object:
    """The list or object in `text`, also if it was cut or has one value a line; else None."""
    if text[:1] not in ("{", "["):
        return None
    for attempt in (str, as_list_of_lines, closed):
        try:
            return parsed(attempt(text), AS_WRITTEN)
        except ValueError:
            pass
    return None


def as_list_of_lines(text: str) -> str:
    return f"[{','.join(text.splitlines())}]"


def closed(text: str) -> str:
    """JSON that was cut: up to its last whole value, with what is open closed."""
    text = text.split(f"\n{NOTICE}", 1)[0]
    end = 0
    closers: list[str] = []
    whole: list[str] = []
    for mark in MARK.finditer(text):
        if len(closers) > DEEPEST:
            return ""
        if mark[0] in "{[":
            closers.append("}" if mark[0] == "{" else "]")
        elif mark[0] == ",":
            end, whole = mark.start(), closers[::-1]
        elif mark[0] in "}]":
            closers = closers[:-1]
            end, whole = mark.end(), closers[::-1]
    return text[:end] + "".join(whole)


def parsed(text: str, decoder: json.JSONDecoder) -> object:
    if text.count("[") + text.count("{") > DEEPEST and is_too_deep(text):
        raise ValueError("nested too deeply")
    value: object = decoder.decode(text)
    return value


def is_too_deep(text: str) -> bool:
    depth = 0
    for mark in MARK.finditer(text):
        depth += (mark[0] in "[{") - (mark[0] in "]}")
        if depth > DEEPEST:
            return True
    return False


def dumped(value: object, *, sort_keys: bool = False) -> str:
    return clean(
        json.dumps(
            value,
            ensure_ascii=False,
            separators=(",", ":"),
            allow_nan=False,
            sort_keys=sort_keys,
        )
    )


def one_line(value: object) -> str:
    return " ".join((value if isinstance(value, str) else dumped(value)).split())
