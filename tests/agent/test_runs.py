"""An agent, whole: a real server, a real journal on disk, real tools."""

import threading
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from inline_snapshot import snapshot

from holdfast.agent import Agent
from holdfast.core.events import RunStopped
from holdfast.core.limits import Limits, StopReason
from holdfast.journal.base import Busy
from holdfast.journal.sqlite import SqliteJournal
from holdfast.models.base import Said
from holdfast.runtime.tasks import Status
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says, several, wants
from holdfast.testing.server import faults
from holdfast.testing.told import told
from holdfast.tools.door import Answer, Question, Scope
from holdfast.tools.function import tool
from tests.agent.whole import name_of


async def log_of(journal: SqliteJournal, session: str) -> list[str]:
    return told([stored.event for stored in await journal.read(session)])


@tool(effect="read")
def double(number: int) -> int:
    "Twice the number."
    return 2 * number


async def test_a_run_uses_a_tool_and_leaves_its_log_on_disk(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("double", number=21), says("It is 42."))
    agent = Agent(name_of(server), tools=[double], journal=journal)

    run = await agent.run("What is twice 21?")

    assert (run.text, run.reason) == ("It is 42.", StopReason.ANSWERED)
    assert [record.tool for record in run.ledger.records] == ["double"]
    assert await log_of(journal, run.session_id) == snapshot(
        [
            "user: What is twice 21?",
            'model: double({"number": 21})',
            "c00000001: 42",
            "model: It is 42.",
            "stopped, answered: It is 42.",
        ]
    )


async def test_a_session_goes_on_where_it_was(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(says("Hello, Ana."), says("Your name is Ana."))
    agent = Agent(name_of(server), journal=journal)

    first = await agent.run("I am Ana.")
    second = await agent.run("Who am I?", session=first.session_id)

    assert second.session_id == first.session_id
    assert [each["content"] for each in server.chats[-1].body["messages"]] == snapshot(
        [
            """\
1. Work on one thing at a time: finish one file before you open the next.
2. Never call a tool twice with the same arguments; its result is in the conversation.
3. After each piece of work say in a sentence what is done and what comes next.
4. Report only what you received from tools. What you did not do, call not done.\
""",
            "I am Ana.",
            "Hello, Ana.",
            "Who am I?",
        ]
    )


def test_a_program_that_is_not_asynchronous_gets_the_same(
    model_server: StartsServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    server = model_server(says("Hello."), says("Hello again."))
    agent = Agent(name_of(server))

    first = agent.run_sync("Hi.")
    second = agent.run_sync("Hi again.", session=first.session_id)

    assert (first.text, second.text) == ("Hello.", "Hello again.")
    assert (tmp_path / "data" / "journal.sqlite").exists()


# --- watching -------------------------------------------------------------------------------------


async def test_a_stream_shows_words_as_they_come_and_then_the_events(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(says("It is noon in Lisbon."))
    agent = Agent(name_of(server), journal=journal)
    words: list[str] = []
    stopped: list[str] = []

    async with agent.stream("What time is it?") as events:
        async for event in events:
            match event:
                case Said(text):
                    words.append(text)
                case RunStopped(_, text):
                    stopped.append(text)
        run = await events.result()

    assert len(words) > 1
    assert "".join(words) == "It is noon in Lisbon."
    assert stopped == [run.text]


async def test_leaving_a_stream_early_cancels_its_run(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(faults.stall(says("It is noon in Lisbon."), after=3))
    agent = Agent(name_of(server), journal=journal)

    async with agent.stream("What time is it?") as events:
        session = events.session_id
        async for event in events:
            if isinstance(event, Said):
                break

    about = await journal.about(session)
    assert about.status == "cancelled"


async def test_a_watcher_that_comes_late_is_shown_everything(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("double", number=1), says("Two."))
    async with Agent(name_of(server), tools=[double], journal=journal) as agent:
        task = await agent.start("Double one.")
        await task.wait()
        watcher = task.driver.bus.watch(after=0)
        watcher.close()
        seen = [each async for each in watcher]
        run = await task.wait()

    assert seen == await journal.read(run.session_id)


# --- stopping and steering --------------------------------------------------------------------------


async def test_cancelling_while_the_model_is_asked_leaves_a_session_that_goes_on(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(faults.stall(), says("Hello."))
    async with Agent(name_of(server), journal=journal) as agent:
        task = await agent.start("Think hard.")
        await anyio.to_thread.run_sync(server.wait_for, lambda: server.chats)
        task.cancel()
        cancelled = await task.wait()
        again = await agent.run("Hi.", session=cancelled.session_id)

    assert (cancelled.reason, task.status) == (StopReason.CANCELLED, Status.FINISHED)
    assert again.text == "Hello."
    server.wait_for(lambda: server.chats[0].hung_up)


async def test_a_tool_that_ignores_a_cancel_is_left_behind_and_told_of_when_it_comes_back(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("block"), says("I see."))
    began, may_end = threading.Event(), threading.Event()

    @tool
    def block() -> str:
        "Blocks."
        began.set()
        assert may_end.wait(30)
        return "came back"

    async with Agent(name_of(server), tools=[block], journal=journal) as agent:
        async with agent.engine.session() as driver:
            task = await agent.start("Go.", session=driver.id)
            await anyio.to_thread.run_sync(began.wait, 30)
            task.cancel()
            cancelled = await task.wait()
            watcher = driver.bus.watch()
            may_end.set()
            await anext(aiter(watcher))
        await agent.run("And now?", session=cancelled.session_id)

    assert await log_of(journal, cancelled.session_id) == snapshot(
        [
            "user: Go.",
            "model: block({})",
            "c00000001: allowed by tool",
            "cancel",
            "c00000001: unknown: Cancelled by the user while this tool was running. It may or may not have taken…",
            "stopped, cancelled: The run stopped (cancelled) without an answer from the model. What was really d…",
            "c00000001: came back",
            "user: And now?",
            "model: I see.",
            "stopped, answered: I see.",
        ]
    )


async def test_words_said_during_a_run_reach_the_model_in_its_next_request(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("look"), says("Done, in blue."))
    agent: Agent

    @tool(effect="read")
    async def look() -> str:
        "Looks."
        agent.tasks[1].say("Make it blue.")
        return "a red door"

    async with Agent(name_of(server), tools=[look], journal=journal) as agent:
        task = await agent.start("Paint the door.")
        run = await task.wait()

    said = [each["content"] for each in server.chats[-1].body["messages"] if each["role"] == "user"]
    assert run.text == "Done, in blue."
    assert said == ["Paint the door.", "Make it blue."]


async def test_a_message_to_a_busy_session_waits_for_its_turn(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("look"), says("First."), says("Second."))
    agent: Agent

    @tool(effect="read")
    async def look() -> str:
        "Looks."
        await agent.start("Then this.", session=agent.tasks[1].session)
        return "seen"

    async with Agent(name_of(server), tools=[look], journal=journal) as agent:
        first = await (await agent.start("Do this.")).wait()
        second = await agent.tasks[2].wait()

    assert (first.text, second.text) == ("First.", "Second.")
    assert first.session_id == second.session_id


async def test_a_run_whose_task_is_cancelled_is_cancelled_on_disk_too(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(faults.stall())
    agent = Agent(name_of(server), journal=journal)

    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "Think hard.")
        await anyio.to_thread.run_sync(server.wait_for, lambda: server.chats)
        group.cancel_scope.cancel()

    (about,) = await journal.sessions()
    assert about.status == "cancelled"
    assert not about.owner


async def test_a_run_ends_when_its_time_is_up_although_the_server_says_nothing(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(faults.stall(), says("I was unable to complete the task."))
    agent = Agent(name_of(server), journal=journal, limits=Limits(seconds=0.2))

    run = await agent.run("Think hard.")

    assert (run.reason, run.text) == (StopReason.OUT_OF_TIME, "I was unable to complete the task.")


# --- permission -------------------------------------------------------------------------------------


@tool(approve=True)
def send(to: str) -> str:
    "Send it."
    return f"sent to {to}"


async def test_a_call_that_needs_a_yes_is_not_run_when_nobody_is_there(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("send", to="all"), says("I could not."))
    agent = Agent(name_of(server), tools=[send], journal=journal)

    run = await agent.run("Send it.")

    assert await log_of(journal, run.session_id) == snapshot(
        [
            "user: Send it.",
            'model: send({"to": "all"})',
            "c00000001: refused by nobody: it needs a yes, and nobody is there to give it",
            "c00000001: Not run. It was not allowed: it needs a yes, and nobody is there to give it",
            "model: I could not.",
            "stopped, answered: I could not.",
        ]
    )


async def test_what_a_person_changes_is_what_runs_and_what_the_model_sees(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("send", to="all"), says("Sent."))
    asked: list[Question] = []

    def approve(question: Question) -> Answer:
        asked.append(question)
        return Answer(allowed=True, arguments='{"to": "ana"}')

    agent = Agent(name_of(server), tools=[send], journal=journal, approve=approve)
    await agent.run("Send it.")
    messages = server.chats[-1].body["messages"]

    assert [question.call.arguments for question in asked] == ['{"to":"all"}']
    assert messages[-2]["tool_calls"][0]["function"]["arguments"] == '{"to":"ana"}'
    assert messages[-1]["content"] == "sent to ana"


async def test_a_question_on_the_stream_can_be_answered_there(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("send", to="all"), says("All right."))
    agent = Agent(name_of(server), tools=[send], journal=journal, attended=True)

    async with agent.stream("Send it.") as events:
        async for event in events:
            if isinstance(event, Question):
                answer = Answer(allowed=False, words="not to all of them")
                assert events.answer(event.call.id, answer)
        run = await events.result()

    (record,) = run.ledger.records
    assert record.detail == "Not run. The user said no: not to all of them"


async def test_a_yes_for_the_session_is_asked_for_once(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    twice = several(wants("note", text="a"), wants("note", text="b"))
    server = model_server(twice, says("Noted."), calls("note", text="c"), says("Noted again."))
    asked: list[str] = []

    @tool(approve=True)
    def note(text: str) -> str:
        "Note it."
        return "noted"

    async def approve(question: Question) -> Answer:
        asked.append(question.call.arguments)
        return Answer(allowed=True, scope=Scope.SESSION)

    agent = Agent(name_of(server), tools=[note], journal=journal, approve=approve)
    first = await agent.run("Note both.")
    await agent.run("And one more.", session=first.session_id)

    assert asked == ['{"text":"a"}']


# --- answers in a shape -----------------------------------------------------------------------------


@dataclass
class Total:
    amount: float
    currency: str


async def test_an_answer_comes_in_the_shape_that_was_asked_for(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(says("It is 12 euros."), says('{"amount": 12, "currency": "EUR"}'))
    agent = Agent(name_of(server), journal=journal, output=Total)

    run = await agent.run("What is the total?")

    assert run.output == Total(12.0, "EUR")
    assert server.chats[-1].body["messages"][-1]["content"] == snapshot(
        "Your answer does not fit the schema: it holds no JSON. Answer again, with JSON alone."
    )


async def test_an_answer_that_never_fits_is_none_and_the_reason_says_why(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(then=says("It is 12 euros."))
    agent = Agent(name_of(server), journal=journal, output=Total)

    run = await agent.run("What is the total?")

    assert (run.output, run.reason) == (None, StopReason.CONCLUDED)


# --- agents that work for others --------------------------------------------------------------------


async def test_an_agent_that_works_for_another_has_a_session_of_its_own_and_is_on_its_bill(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    below = model_server(calls("double", number=4), says("Eight."))
    above = model_server(calls("count", task="Double four."), says("It is eight."))
    clerk = Agent(name_of(below), tools=[double], journal=journal)
    agent = Agent(
        name_of(above), tools=[clerk.as_tool("count", "Counts for you.")], journal=journal
    )

    run = await agent.run("What is twice four?")
    (child,) = await journal.sessions(parent=run.session_id)

    assert run.text == "It is eight."
    assert [record.detail for record in run.ledger.records] == ["Eight."]
    assert run.usage.prompt > sum(each.tokens for each in above.chats)
    assert child.title == "Double four."


async def test_an_agent_that_works_for_another_may_spend_only_its_share(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    below = model_server(then=calls("double", number=4))
    above = model_server(calls("count", task="Double four."), says("It is eight."))
    clerk = Agent(name_of(below), tools=[double], journal=journal)
    helper = clerk.as_tool("count", "Counts for you.", share=0.5)
    agent = Agent(name_of(above), tools=[helper], journal=journal, limits=Limits(rounds=9))

    run = await agent.run("What is twice four?")

    (record,) = run.ledger.records
    assert record.detail.startswith("[It stopped: ")


# --- two at once ------------------------------------------------------------------------------------


async def test_a_session_that_somebody_else_has_open_is_refused_politely(
    model_server: StartsServers, journal: SqliteJournal, tmp_path: Path
) -> None:
    server = model_server(says("Hello."))
    other = SqliteJournal(tmp_path / "journal.sqlite")
    async with Agent(name_of(server), journal=journal) as agent, agent.engine.session() as driver:
        with pytest.raises(Busy, match="open"):
            await Agent(name_of(server), journal=other).run("Hi.", session=driver.id)
    await other.aclose()


# --- what is said before anything runs ----------------------------------------------------------------


async def test_the_permissions_of_an_agent_are_a_mode_and_rules(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("double", number=2), says("I may not."))
    agent = Agent(
        name_of(server),
        tools=[double],
        journal=journal,
        permissions={"mode": "auto", "deny": ["double", "dobule"]},
    )
    run = await agent.run("Double two.")

    (record,) = run.ledger.records
    assert (record.detail, run.warnings) == snapshot(
        (
            "Not run. The user's rules forbid this: double. Do not try to get round it; say what you could not do.",
            ("The rule dobule never applies: no tool is named 'dobule'; did you mean 'double'?",),
        )
    )


def test_what_cannot_be_meant_is_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="which model"):
        Agent()
    with pytest.raises(ValueError, match="two tools are named 'double'"):
        Agent("ollama/qwen3:8b", tools=[double, double])
    with pytest.raises(ValueError, match="no limit named 'round'"):
        Agent("ollama/qwen3:8b", limits={"round": 3})
    with pytest.raises(ValueError, match="no 'forbid'"):
        Agent("ollama/qwen3:8b", permissions={"forbid": "double"})


async def test_a_session_with_a_name_is_begun_once_and_gone_on_with(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(says("Hello."), says("Again."))
    agent = Agent(name_of(server), journal=journal)

    first = await agent.run("Hi.", name="daily")
    second = await agent.run("Hi again.", name="daily")

    assert (first.session_id, second.session_id) == ("daily", "daily")
    assert second.usage.prompt > first.usage.prompt
