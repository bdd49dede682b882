"""What the type checker sees of tools. It is checked, and run by `test_function`."""

from collections.abc import AsyncIterator
from typing import assert_type

from holdfast.tools.base import Context, Progress, Tool
from holdfast.tools.function import FunctionTool, tool


@tool
def bare(path: str, lines: int = 20) -> str:
    return path * lines


@tool(effect="read", timeout=3.0)
async def with_options(word: str) -> list[str]:
    return [word]


@tool()
async def watched(word: str, context: Context) -> AsyncIterator[Progress | str]:
    yield word


def plain(number: float) -> float:
    return number


called = tool(plain, name="half")


def check() -> None:
    assert_type(bare("a", lines=2), str)
    assert_type(called(2), float)
    narrowed: FunctionTool[[float], float] = called
    assert narrowed(2) == 2
    tools: list[Tool] = [bare, with_options, watched, called]
    assert [each.name for each in tools] == ["bare", "with_options", "watched", "half"]


async def check_waiting() -> None:
    assert_type(await with_options("a"), list[str])


def refused() -> None:
    """Never run: each of these is an error that the type checker must find."""
    bare(3)  # type: ignore[arg-type]
    bare("a", line=2)  # type: ignore[call-arg]
    tool(plain, effect="harmless")  # type: ignore[call-overload]
    tool(plain, efect="read")  # type: ignore[call-overload]
