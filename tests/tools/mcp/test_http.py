"""Servers over HTTP, on loopback."""

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from subprocess import DEVNULL

import anyio
import pytest

from holdfast.tools.base import Output, ToolError
from holdfast.tools.mcp import Patience, Server, State, Wire, read
from tests.tools.mcp.watching import HERE, Caller, watching

STUBBORN = Patience(first_pause=0.05, longest_pause=0.2, failures=500, call=20.0)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@asynccontextmanager
async def serving(script: str, *args: str) -> AsyncIterator[None]:
    command = [sys.executable, str(HERE / script), *args]
    async with await anyio.open_process(command, stdout=DEVNULL, stderr=DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


async def test_a_server_over_http_answers_dies_and_comes_back() -> None:
    port = free_port()
    server = Server(name="web", wire=Wire.HTTP, url=f"http://127.0.0.1:{port}/mcp")
    async with watching(server, patience=STUBBORN, ready=False) as watch:
        async with serving("new.py", "streamable-http", str(port)):
            await watch.until_told(lambda status: status.state is State.CONNECTED)
            add = watch.tool("web__add")
            assert await watch.call("web__add", {"a": 2, "b": 3}) == Output("5")
        await watch.until(lambda watch: watch.offered[-1] == ("web", ()))
        with pytest.raises(ToolError, match="^The server web is not connected, so add did not run"):
            await add.run({"a": 2, "b": 3}, Caller())  # type: ignore[misc]
        async with serving("new.py", "streamable-http", str(port)):
            await watch.until(lambda watch: len(watch.offered) == 3)
            assert await watch.call("web__add", {"a": 2, "b": 4}) == Output("6")


async def test_a_server_with_the_older_transport_answers() -> None:
    port = free_port()
    server = Server(name="web", wire=Wire.SSE, url=f"http://127.0.0.1:{port}/sse")
    async with (
        serving("new.py", "sse", str(port)),
        watching(server, patience=STUBBORN, ready=False) as watch,
    ):
        await watch.until_told(lambda status: status.state is State.CONNECTED)
        assert await watch.call("web__add", {"a": 2, "b": 3}) == Output("5")


async def test_a_server_that_forgot_us_is_asked_again() -> None:
    port = free_port()
    headers = {"Authorization": "Bearer ${TOKEN}"}
    table = {"url": f"http://127.0.0.1:{port}/mcp", "headers": headers}
    server = read({"web": table}, {"TOKEN": "open-sesame"}).servers[0]
    async with (
        serving("web.py", str(port)),
        watching(server, patience=STUBBORN, ready=False) as watch,
    ):
        await watch.until_told(lambda status: status.state is State.CONNECTED)
        first = await watch.call("web__forget")
        second = await watch.call("web__hello")

    assert (first, second) == (Output("forget from session-0"), Output("hello from session-2"))


async def test_a_wrong_token_is_named_as_the_reason_but_not_shown() -> None:
    port = free_port()
    table = {
        "url": f"http://127.0.0.1:{port}/mcp",
        "headers": {"Authorization": "Bearer wrong-one"},
    }
    server = read({"web": table}, {}).servers[0]
    async with (
        serving("web.py", str(port)),
        watching(server, patience=STUBBORN, ready=False) as watch,
    ):
        await watch.until_told(lambda status: "401" in status.text)

    assert (
        watch.told[-2].text
        == "It refused us with 401 Unauthorized: check the token in its headers."
    )
    assert "wrong-one" not in repr(watch.told)
