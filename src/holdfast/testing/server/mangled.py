"""A call as models mangle it: arguments that are not quite JSON, and calls written as text."""

import json
from collections.abc import Callable, Mapping

from holdfast.testing.server.draft import Call

BROKEN: Mapping[str, Callable[[str], str]] = {
    "doubled quotes": lambda text: text.replace('"', '""'),
    "doubled braces": lambda text: f"{{{text}}}",
    "single quotes": lambda text: text.replace('"', "'"),
    "bare keys": lambda text: text.replace('":', ":").replace('{"', "{").replace(', "', ", "),
    "trailing comma": lambda text: text.removesuffix("}") + ",}",
    "unclosed": lambda text: text.removesuffix("}"),
    "cut off": lambda text: text[: len(text) // 2],
    "written twice": lambda text: text + text,
    "in a fence": lambda text: f"```json\n{text}\n```",
    "in a string": lambda text: json.dumps(text),
    "after some words": lambda text: f"Here are the arguments: {text}",
    "a raw line end": lambda text: text.removesuffix("}") + ', "note": "one\ntwo"}',
    "as Python": lambda text: text.removesuffix("}") + ', "really": True, "other": None}',
    "a list": lambda text: f"[{text}]",
    "empty": lambda text: "",
    "no JSON at all": lambda text: "the usual ones, please",
}
"""Ways to get the arguments of a call wrong, each made of arguments that were right."""


def fenced(call: Call) -> str:
    return f"```json\n{as_object(call)}\n```"


def tagged(call: Call) -> str:
    return f"<tool_call>\n{as_object(call)}\n</tool_call>"


def announced(call: Call) -> str:
    return f"TOOL_CALL {as_object(call)}"


def bare(call: Call) -> str:
    return as_object(call)


def pythonic(call: Call) -> str:
    arguments = json.loads(str(call.arguments))
    return f"[{call.name}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})]"


def as_object(call: Call) -> str:
    return f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}'


AS_TEXT: Mapping[str, Callable[[Call], str]] = {
    "fenced": fenced,
    "tagged": tagged,
    "TOOL_CALL": announced,
    "bare": bare,
    "pythonic": pythonic,
}
"""Ways to write a call into the text of a reply, where no server looks for it."""
