"""The folder with the reference servers, or a reason to skip. `make test-mcp` installs them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.tools.mcp import Server

Reference = Callable[..., Server]


@pytest.fixture
def folder() -> Path:
    given = os.environ.get("HOLDFAST_MCP_SERVERS")
    if not given:
        pytest.skip("HOLDFAST_MCP_SERVERS names no folder with the reference servers")
    return Path(given).resolve()


@pytest.fixture
def node(folder: Path) -> Reference:
    """A server of npm, by the name it has there."""

    def made(name: str, *args: str, **options: object) -> Server:
        script = folder / f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
        whole = {"name": name, "command": "node", "args": (str(script), *args), **options}
        return Server(**whole)  # type: ignore[arg-type]

    return made


@pytest.fixture
def pip(folder: Path) -> Reference:
    """A server of PyPI, by the name it has there."""

    def made(name: str, *args: str, **options: object) -> Server:
        command = str(folder / f"venv/bin/mcp-server-{name}")
        whole = {"name": name, "command": command, "args": args, **options}
        return Server(**whole)  # type: ignore[arg-type]

    return made
