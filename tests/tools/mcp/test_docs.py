"""What the page about MCP servers says is what happens."""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from holdfast.tools.mcp import load
from holdfast.tools.mcp.config import KEYS
from tests.tools.mcp.watching import old

PAGE = Path(__file__).parents[3] / "docs/how-to/use-mcp-servers.md"


def test_the_configuration_on_the_page_is_one() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)

    found = load(text, {"TICKETS_TOKEN": "x"})

    assert [server.name for server in found.servers] == ["files", "tickets"]
    assert found.warnings == ()


def test_the_page_names_every_key() -> None:
    (table,) = re.findall(r"\| key \| means \|\n(.*?)\n\n", PAGE.read_text(), re.DOTALL)

    assert sorted(set(re.findall(r"`(\w+)`(?=[^|]*\| )", table))) == sorted(KEYS)


async def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    known: dict[str, object] = {}
    exec(compile(example, PAGE.name, "exec"), known)
    names = cast(Callable[[str], Awaitable[list[str]]], known["names"])
    server = old()
    table = {"command": server.command, "args": list(server.args), "tools": ["echo"]}

    assert await names(json.dumps({"mcpServers": {"old": table}})) == ["old__echo"]
    assert "old connected 1 tools" in capsys.readouterr().out
