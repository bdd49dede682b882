"""Teaching a model to call tools by writing, where its server cannot offer it any.

What the model then writes is read by `dialects`, which also knows the ways other models have.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

from holdfast.core.jsontext import dumped, json_object
from holdfast.core.tools import ToolSpec


class Dialect(Enum):
    """How a model is told to call tools where its server cannot offer it any."""

    ACTIONS = ('TOOL_CALL {"tool": ', 'FINAL {"answer": ')
    """DocuChat's ADR-0005."""
    JSON = ('{"type": "tool_call", "tool": ', '{"type": "final", "answer": ')
    """Nothing but one object: for servers that can hold a model to a schema."""


def instructions(tools: Iterable[ToolSpec], dialect: Dialect) -> str:
    """What a model must be told to speak the dialect."""
    listed = "\n".join(
        f"- {tool.name}: {' '.join(tool.description.split())} Input: {tool.parameters}"
        for tool in tools
    )
    return (
        "To use a tool, reply with this and nothing after it:\n"
        f"{history_text('name', '{...}', dialect)}\n"
        "The result comes in the next message. When you have the answer, reply with:\n"
        f'{dialect.value[1]}"..."}}\n'
        "Write valid JSON: double quotes, line breaks in strings as \\n.\n"
        f"Tools:\n{listed or '(none)'}"
    )


def history_text(name: str, arguments: str, dialect: Dialect) -> str:
    """A past call as the model would have written it."""
    return f'{dialect.value[0]}{dumped(name)}, "input": {arguments}}}'


def history_result(name: str, text: str) -> str:
    """A past result, for a message in the user's role."""
    return f"RESULT of {name}:\n{text}"


def schema(tools: Iterable[ToolSpec]) -> dict[str, object]:
    """What `Dialect.JSON` allows, for servers that hold a model to a schema: a call of one of
    these tools, or an answer."""
    answer = {"type": {"const": "final"}, "answer": {"type": "string"}}
    return {"anyOf": [*map(call_schema, tools), exactly(answer)]}


def call_schema(tool: ToolSpec) -> dict[str, object]:
    wanted = json_object(tool.parameters)
    given = wanted if wanted.get("type") == "object" else {"type": "object"}
    return exactly({"type": {"const": "tool_call"}, "tool": {"const": tool.name}, "input": given})


def exactly(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
