"""Whole runs with servers of tools: real processes, which crash, dawdle and ask back."""

import json
import sys
from pathlib import Path

import anyio
import pytest
from inline_snapshot import snapshot

from holdfast.agent import Agent
from holdfast.core.events import Outcome, ToolsChanged, ToolStarted
from holdfast.core.limits import StopReason
from holdfast.journal.base import Stored
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says
from holdfast.tools.base import Filled, Form, Progress
from holdfast.tools.door import Question
from holdfast.tools.function import tool
from holdfast.tools.mcp import ConfigError
from tests.agent.whole import name_of, results_in, until_there

SERVERS = Path(__file__).parents[1] / "tools" / "mcp" / "servers"
WINDOW = 32_768


def old(*behaviour: str, **options: object) -> dict[str, object]:
    """A server, as it stands in a file of `mcpServers`."""
    return {"command": sys.executable, "args": [str(SERVERS / "old.py"), *behaviour], **options}


async def test_tools_of_a_server_are_offered_under_its_name_and_called(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("shop__echo", text="hello"), says("It said hello."), window=WINDOW)
    asked: list[Question] = []

    def approve(question: Question) -> bool:
        asked.append(question)
        return True

    agent = Agent(
        name_of(server),
        mcp={"mcpServers": {"shop": old(tools=["echo", "fail"])}},
        journal=journal,
        approve=approve,
    )

    run = await agent.run("Say hello.")

    assert [each["function"]["name"] for each in server.chats[0].body["tools"]] == [
        "read_result",
        "shop__echo",
        "shop__fail",
    ]
    assert [(each.tool.source, each.why) for each in asked] == snapshot(
        [("shop", "shop__echo runs something.")]
    )
    assert (run.text, results_in(server)) == ("It said hello.", ["hello"])


async def test_a_server_that_crashes_costs_a_call_and_its_tools_come_back(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(
        calls("shop__crash"),
        calls("until_it_is_back"),
        calls("shop__echo", text="again"),
        says("It is back."),
        window=WINDOW,
    )
    came, gone = anyio.Event(), anyio.Event()

    @tool(effect="read")
    async def until_it_is_back() -> str:
        "Waits."
        await came.wait()
        return "it is"

    async with Agent(
        name_of(server),
        tools=[until_it_is_back],
        mcp={"shop": old(tools=["echo", "crash"])},
        journal=journal,
        approve=lambda question: True,
    ) as agent:
        toolbox = agent.engine.means.gateway.toolbox
        await until_there(toolbox, "shop__echo")

        def look() -> None:
            if toolbox.get("shop__echo") is None:
                gone.set()
            elif gone.is_set():
                came.set()

        toolbox.watch(look)
        run = await agent.run("Crash it.")

    events = [stored.event for stored in await journal.read(run.session_id)]
    changes = [
        "shop__echo" in {spec.name for spec in event.tools}
        for event in events
        if isinstance(event, ToolsChanged)
    ]
    assert (run.text, run.reason) == ("It is back.", StopReason.ANSWERED)
    assert changes == [False, True]
    assert [(each.outcome, each.detail) for each in run.ledger.records] == [
        (
            Outcome.FAILED,
            "The server shop stopped while crash was running. It may or may not have taken "
            "effect: check before you try again.",
        ),
        (Outcome.DONE, "it is"),
        (Outcome.DONE, "again"),
    ]


async def test_a_call_that_hangs_is_cancelled_at_its_server_which_serves_on(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(
        calls("shop__hang"), calls("shop__echo", text="still here"), says("Yes."), window=WINDOW
    )
    async with Agent(
        name_of(server),
        mcp={"shop": old(tools=["echo", "hang"])},
        journal=journal,
        approve=lambda question: True,
    ) as agent:
        task = await agent.start("Hang.")
        watcher = task.driver.bus.watch(after=0)
        async for shown in watcher:
            if isinstance(shown, Stored) and isinstance(shown.event, ToolStarted):
                break
        task.cancel()
        cancelled = await task.wait()
        again = await agent.run("Are you there?", session=cancelled.session_id)

    assert [each.outcome for each in cancelled.ledger.records] == [Outcome.UNKNOWN]
    assert [each.detail for each in again.ledger.records] == ["still here"]


async def test_a_call_that_takes_longer_than_its_server_may_is_stopped_and_the_run_goes_on(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(
        calls("shop__hang"), calls("shop__echo", text="still here"), says("Yes."), window=WINDOW
    )
    agent = Agent(
        name_of(server),
        mcp={"shop": old(tools=["echo", "hang"], timeout=2)},
        journal=journal,
        approve=lambda question: True,
    )

    run = await agent.run("Hang.")

    assert [(each.outcome, each.detail) for each in run.ledger.records] == snapshot(
        [
            (
                Outcome.TIMED_OUT,
                "shop__hang was stopped: it took longer than 2 seconds. It may or may not have taken effect. Check before you call it again.",
            ),
            (Outcome.DONE, "still here"),
        ]
    )


async def test_a_server_that_dawdles_does_not_hold_up_a_run_that_needs_others(
    model_server: StartsServers, journal: SqliteJournal, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    server = model_server(
        calls("quick__echo", text="now"),
        says("Done without it."),
        calls("slow__echo", text="later"),
        says("Done with it."),
        window=WINDOW,
    )
    async with Agent(
        name_of(server),
        mcp={"quick": old(tools=["echo"]), "slow": old("late", str(gate), tools=["echo"])},
        journal=journal,
        approve=lambda question: True,
    ) as agent:
        first = await agent.run("Be quick.")
        toolbox = agent.engine.means.gateway.toolbox
        missing = toolbox.get("slow__echo") is None
        gate.touch()
        await until_there(toolbox, "slow__echo")
        second = await agent.run("And now?", session=first.session_id)

    assert (first.text, missing) == ("Done without it.", True)
    assert [each.detail for each in first.ledger.records] == ["now"]
    assert [each.detail for each in second.ledger.records] == ["later"]


async def test_a_server_that_cannot_start_leaves_a_run_with_the_other_tools(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("quick__echo", text="now"), says("Done."), window=WINDOW)
    agent = Agent(
        name_of(server),
        mcp={"quick": old(tools=["echo"]), "dead": old("die"), "none": {"command": "no-such-one"}},
        journal=journal,
        approve=lambda question: True,
    )

    run = await agent.run("Be quick.")

    assert (run.text, results_in(server)) == ("Done.", ["now"])


async def test_a_question_of_a_server_reaches_the_person_and_the_answer_goes_back(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("shop__ask"), says("You are Ana."), window=WINDOW)
    agent = Agent(
        name_of(server),
        mcp={"shop": old(tools=["ask"], trust=True)},
        journal=journal,
        attended=True,
        approve=lambda question: True,
    )
    forms: list[Form] = []

    async with agent.stream("Who am I?") as events:
        async for event in events:
            if isinstance(event, Form):
                forms.append(event)
                (call_id,) = events.driver.desk.pending
                assert events.answer(call_id, Filled(accepted=True, values={"name": "Ana"}))
        await events.result()

    assert [form.message for form in forms] == ["Who are you?"]
    assert results_in(server) == ['{"action": "accept", "content": {"size": 7, "name": "Ana"}}']


async def test_a_question_of_a_server_is_called_off_when_nobody_is_there(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("shop__ask"), says("I do not know."), window=WINDOW)
    agent = Agent(
        name_of(server),
        mcp={"shop": old(tools=["ask"])},
        journal=journal,
        approve=lambda question: True,
    )

    await agent.run("Who am I?")

    assert results_in(server) == ['{"action": "cancel"}']


async def test_the_progress_of_a_server_is_shown_while_it_works(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("shop__walk"), says("There."), window=WINDOW)
    agent = Agent(
        name_of(server),
        mcp={"shop": old(tools=["walk"])},
        journal=journal,
        approve=lambda question: True,
    )

    async with agent.stream("Walk.") as events:
        shown = [event async for event in events if isinstance(event, Progress)]

    assert shown == [Progress("step 1", 1.0, 2.0), Progress("step 2", 2.0, 2.0)]


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            {"shop": {"args": ["x"]}},
            "MCP server 'shop': command is missing: say what starts the server, or give its "
            '"url".',
        ),
        ({"shop": {"command": 7}}, "MCP server 'shop': command must be a text."),
        (
            {"shop": {"url": "${NO_SUCH_VARIABLE}/mcp"}},
            "MCP server 'shop': url needs the variable NO_SUCH_VARIABLE: set it, or write "
            "${NO_SUCH_VARIABLE:-default}.",
        ),
        (
            {"mcpServers": []},
            "mcpServers must hold a table for each server: its name, then its keys.",
        ),
    ],
)
async def test_a_broken_configuration_is_a_sentence(
    model_server: StartsServers,
    journal: SqliteJournal,
    config: dict[str, object],
    sentence: str,
) -> None:
    agent = Agent(name_of(model_server()), mcp=config, journal=journal)

    with pytest.raises(ConfigError) as wrong:
        await agent.run("Hello.")

    assert str(wrong.value) == sentence


async def test_a_configuration_is_read_from_its_file_and_a_doubt_about_it_is_told(
    model_server: StartsServers, journal: SqliteJournal, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    server = model_server(calls("shop__echo", text="hello"), says("Hello."), window=WINDOW)
    agent = Agent(name_of(server), mcp=file, journal=journal, approve=lambda question: True)
    file.write_text("{ not json")
    with pytest.raises(ConfigError, match="no JSON object"):
        await agent.run("Hello.")

    file.write_text(json.dumps({"mcpServers": {"shop": {**old(), "tols": []}}}))
    run = await agent.run("Hello.")

    assert results_in(server) == ["hello"]
    assert run.warnings == (
        "MCP server 'shop': tols is not known and was ignored; did you mean tools?",
    )
