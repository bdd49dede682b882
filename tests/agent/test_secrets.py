"""Secrets that pass through a run are nowhere afterwards: not on disk, not on a screen, not at the
model."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from holdfast.agent import Agent
from holdfast.journal.exchange import exported
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says
from holdfast.testing.server import ModelServer
from holdfast.tools.base import Progress
from holdfast.tools.door import Question
from holdfast.tools.function import tool
from tests.agent.whole import name_of, results_in, until_there
from tests.tools.mcp.test_http import free_port, serving

WINDOW = 32_768
IN_THE_ENVIRONMENT = "correct horse battery staple"
"""No shape gives it away: it is known because a variable with the name of a key holds it."""
IN_A_HEADER = "zXcV-8841-tokens-are-long-77aa"
PASTED = "sk-proj-4fA9kQ2mZ7xW1pL8vB3nR6tY"
IN_ARGUMENTS = "ghp_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0u"
OF_A_SERVER = "open-sesame"
"""What the server over HTTP wants to hear after `Bearer`."""


@pytest.fixture(autouse=True)
def a_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", IN_THE_ENVIRONMENT)


def leaks(where: Iterable[bytes], *secrets: str) -> list[str]:
    everything = list(where)
    return [secret for secret in secrets if any(secret.encode() in part for part in everything)]


async def left_behind(journal: SqliteJournal, folder: Path, session: str) -> list[bytes]:
    """All that can be read afterwards: the files of the journal, while it is open and when it is
    closed, and an export."""
    lines = [line.encode() for line in await exported(journal, session)]
    open_files = files_in(folder)
    await journal.aclose()
    assert {"journal.sqlite", "journal.sqlite-wal"} <= open_files.keys()
    return [*lines, *open_files.values(), *files_in(folder).values()]


def files_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("journal.sqlite*")}


def sent(server: ModelServer) -> list[bytes]:
    return [each.raw for each in server.received]


async def test_secrets_of_tools_and_users_are_on_no_disk_on_no_screen_and_at_no_model(
    model_server: StartsServers,
    journal: SqliteJournal,
    tmp_path: Path,
) -> None:
    ran_with: list[str] = []

    @tool(effect="read")
    def request_sent() -> str:
        "What was sent."
        return f"GET / HTTP/1.1\nAuthorization: Bearer {IN_A_HEADER}\n"

    @tool(effect="read")
    def settings() -> dict[str, str]:
        "How it is set up."
        return {"shop": IN_THE_ENVIRONMENT, "folder": "/srv"}

    @tool(approve=True)
    def sign_in(token: str) -> str:
        "Signs in."
        ran_with.append(token)
        raise RuntimeError(f"{token} was refused, and so was {PASTED}")

    server = model_server(
        calls("request_sent"),
        calls("settings"),
        calls("sign_in", token=IN_ARGUMENTS),
        says("Nothing worked."),
        window=WINDOW,
    )
    questions: list[Question] = []

    def approve(question: Question) -> bool:
        questions.append(question)
        return True

    agent = Agent(
        name_of(server),
        tools=[request_sent, settings, sign_in],
        journal=journal,
        approve=approve,
    )

    async with agent.stream(f"Sign in with {PASTED} please.") as events:
        seen = [event async for event in events]
        run = await events.result()

    planted = (IN_THE_ENVIRONMENT, IN_A_HEADER, PASTED, IN_ARGUMENTS)
    shown = [repr(event).encode() for event in (*seen, *questions, run)]
    assert leaks(await left_behind(journal, tmp_path, run.session_id), *planted) == []
    assert leaks(shown, *planted) == []
    assert leaks(sent(server), *planted) == []
    assert ran_with == []  # a placeholder is no key
    assert [
        each["content"] for each in server.chats[-1].body["messages"] if each["role"] == "user"
    ] == ["Sign in with sk-[secret: api key] please."]
    assert results_in(server)[:2] == [
        "GET / HTTP/1.1\nAuthorization: Bearer [secret: credentials]\n",
        '{"shop": "[secret: named]", "folder": "/srv"}',
    ]


async def test_a_key_that_a_server_was_given_is_not_in_what_it_says(
    model_server: StartsServers, journal: SqliteJournal, tmp_path: Path
) -> None:
    server = model_server(calls("web__mirror"), says("It knows us."), window=WINDOW)
    port = free_port()
    headers = {"Authorization": f"Bearer {OF_A_SERVER}"}
    agent = Agent(
        name_of(server),
        mcp={"web": {"url": f"http://127.0.0.1:{port}/mcp", "headers": headers}},
        journal=journal,
        approve=lambda question: True,
    )

    async with serving("web.py", str(port)), agent:
        await until_there(agent.engine.means.gateway.toolbox, "web__mirror")
        async with agent.stream("Who are we?") as events:
            seen = [event async for event in events]
            run = await events.result()

    shown = [repr(event).encode() for event in (*seen, run)]
    assert results_in(server) == ["you said ***"]
    assert leaks(await left_behind(journal, tmp_path, run.session_id), OF_A_SERVER) == []
    assert leaks([*shown, *sent(server)], OF_A_SERVER) == []


async def test_a_secret_in_the_progress_of_a_tool_is_not_shown_either(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    @tool(effect="read")
    async def look() -> AsyncIterator[object]:
        "Looks."
        yield Progress(f"signing in with {PASTED}")
        yield "seen"

    server = model_server(calls("look"), says("Signed in."), window=WINDOW)
    agent = Agent(name_of(server), tools=[look], journal=journal)

    async with agent.stream("Look.") as events:
        told = [event.text async for event in events if isinstance(event, Progress)]

    assert told == ["signing in with sk-[secret: api key]"]
