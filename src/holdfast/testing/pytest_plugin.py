"""The fixture `model_server` for pytest: servers that close with the test, and judge it.

    def test_my_agent(model_server):
        server = model_server(says("Hello."))
        ...

A test whose requests a strict server would not have taken fails, with the complaints. Nothing but
pytest is imported until the fixture is used, so that it costs nothing where it is not.
"""

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from holdfast.testing.server import Kind, ModelServer, Turn


class StartsServers(Protocol):
    """Starts a server; the arguments are those of `ModelServer`."""

    def __call__(
        self,
        *turns: "Turn",
        kind: "Kind | str" = ...,
        window: int = ...,
        model: str = ...,
        key: str | None = ...,
        tools: bool = ...,
        then: "Turn | None" = ...,
        strict: bool = ...,
        refuse: bool = ...,
        port: int = ...,
    ) -> "ModelServer": ...


STARTED: pytest.StashKey[list["ModelServer"]] = pytest.StashKey()


@pytest.fixture
def model_server(request: pytest.FixtureRequest) -> Iterator[StartsServers]:
    """Starts misbehaving model servers, `model_server(says("Hello."))`, and judges the test:
    if it sent what a strict server would not have taken, it fails, unless it says
    `server.expect_complaints()`. The servers are closed when the test ends.
    """
    from holdfast.testing.server import ModelServer

    servers = request.node.stash.setdefault(STARTED, [])
    with ExitStack() as open_servers:

        def start(*turns: "Turn", **settings: Any) -> ModelServer:
            server = open_servers.enter_context(ModelServer(*turns, **settings))
            servers.append(server)
            return server

        yield start


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """In the call itself and not in the teardown, so that the test fails and is no error."""
    try:
        result = yield
    except BaseException:
        if complaints := complaints_about(item):  # they may well be the reason
            item.add_report_section("call", "complaints of the model server", complaints)
        raise
    if complaints := complaints_about(item):
        pytest.fail(
            f"A strict server would not have taken what was sent:\n{complaints}\n"
            "If it is sent on purpose, say so in the test: server.expect_complaints()",
            pytrace=False,
        )
    return result


def complaints_about(item: pytest.Item) -> str:
    servers = item.stash.get(STARTED, ())
    complaints = [
        complaint
        for server in servers
        if not server.expects_complaints
        for complaint in server.complaints
    ]
    return "\n".join(f"- {complaint}" for complaint in dict.fromkeys(complaints))
