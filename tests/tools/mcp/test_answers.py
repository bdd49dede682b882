"""What a server may answer, however strange: it has run, so it is never called a failure."""

import pytest
from mcp.types import CallToolResult, TextContent

from holdfast.core.jsontext import dumped
from holdfast.tools.base import Output
from holdfast.tools.mcp.results import output


def answer(*texts: str, structured: object = None) -> CallToolResult:
    content = [TextContent(text=text) for text in texts]
    return CallToolResult.model_construct(
        content=content, structured_content=structured, is_error=False
    )


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (["a", "b"], {"result": ["a", "b"]}),
        (["1", "2"], {"result": [1, 2]}),
        (['{"id": 1}', '{"id": 2}'], {"result": [{"id": 1}, {"id": 2}]}),
        (["a"], {"result": ["a"]}),
        (["plain"], {"result": "plain"}),
        (['{"a": 1}'], {"a": 1}),
    ],
)
def test_what_the_texts_say_is_not_said_again(texts: list[str], structured: object) -> None:
    assert output(answer(*texts, structured=structured), None) == Output("\n".join(texts))


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        ([], {"result": []}),
        (["a"], {"result": ["a", "b"]}),
        (["a", "b"], {"result": ["b", "a"]}),
        (["2 found"], {"result": ["a", "b"]}),
        (["1", "2", "3"], {"result": [[1, 2], [3]]}),
        (["None"], {"result": [None]}),
        (["null"], {"a": 1, "b": 2}),
    ],
)
def test_what_the_texts_do_not_say_is_said(texts: list[str], structured: object) -> None:
    said = "\n".join([*texts, dumped(structured)])

    assert output(answer(*texts, structured=structured), None) == Output(said)


def test_what_is_nested_too_deeply_is_told_and_no_failure() -> None:
    brackets = "[" * 200_000
    promised: dict[str, object] = {"type": "object", "additionalProperties": {"$ref": "#"}}

    assert output(answer(brackets, structured={"x": 1}), None) == Output(f'{brackets}\n{{"x":1}}')
    assert output(answer("done", structured=deep(3_000)), promised) == Output(
        "done\n[The structured content is nested too deeply to be shown.]"
    )


@pytest.mark.timeout(20)
def test_a_promise_of_many_choices_is_not_held_against_a_large_result() -> None:
    value = {"a": [["z" * 50] * 20_000]}
    choices: dict[str, object] = {"properties": {"a": {"oneOf": [{"type": "string"}] * 3_000}}}

    assert output(answer(structured=value), choices) == Output(dumped(value))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "pattern",
    [
        "^(a|a)*$",
        "^((a+))+$",
        "^(a|aa)+$",
        "^(a?){40}a{40}$",
        "(.*a){25}",
        "^a*a*a*a*a*a*a*a*b$",
        "a*b",
        "b|a*b",
        r"^(a*)*\1$",
        "^a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?aaaaaaaaaaaaaaaaaaaaaaaa$",
    ],
)
def test_no_promise_of_a_server_keeps_us_busy(pattern: str) -> None:
    value = {"x": "a" * 200_000 + "!"}
    shape: dict[str, object] = {"properties": {"x": {"type": "string", "pattern": pattern}}}
    names: dict[str, object] = {"patternProperties": {pattern: {"type": "integer"}}}

    assert output(answer(structured=value), shape) == Output(dumped(value))
    assert output(answer(structured={value["x"]: 1}), names) == Output(dumped({value["x"]: 1}))
