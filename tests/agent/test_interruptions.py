"""Runs that are interrupted, watched, queued and failed in unlucky moments."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot

from holdfast.agent import Agent
from holdfast.core.events import Event, RunStopped, ToolStarted
from holdfast.core.limits import Limits, StopReason
from holdfast.core.state import State
from holdfast.journal.base import Book, JournalError, Stored, Written
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.sqlite import SqliteJournal
from holdfast.runtime.answer import candidates
from holdfast.runtime.driver import Broken
from holdfast.runtime.tasks import Status
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says
from holdfast.testing.server import faults
from holdfast.testing.told import told
from holdfast.tools.base import Context, Filled, Form
from holdfast.tools.door import Answer, Question
from holdfast.tools.function import tool
from tests.agent.whole import name_of


@tool(effect="read")
def double(number: int) -> int:
    "Twice the number."
    return 2 * number


async def test_cancelling_a_task_that_waits_for_its_turn_leaves_the_other_run_alone(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("wait"), says("First."))
    began, may_end = anyio.Event(), anyio.Event()

    @tool(effect="read")
    async def wait() -> str:
        "Waits."
        began.set()
        await may_end.wait()
        return "waited"

    async with Agent(name_of(server), tools=[wait], journal=journal) as agent:
        first = await agent.start("One.")
        await began.wait()
        second = await agent.start("Two.", session=first.session)
        second.cancel()
        await second.ended()
        may_end.set()
        run = await first.wait()

    assert (run.reason, run.text) == (StopReason.ANSWERED, "First.")
    assert second.status is Status.CANCELLED


async def test_words_that_come_when_the_answer_is_there_are_refused_and_destroy_nothing(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(says("Done."))
    refused: list[str] = []

    async with Agent(name_of(server), journal=journal) as agent, agent.engine.session() as driver:
        watcher = driver.bus.watch()

        async def thank() -> None:
            async for shown in watcher:
                if isinstance(shown, Stored) and isinstance(shown.event, RunStopped):
                    try:
                        driver.say("Thanks.")
                    except RuntimeError as error:
                        refused.append(str(error).replace(driver.id, "S"))
                    return

        async with anyio.create_task_group() as group:
            group.start_soon(thank)
            run = await agent.run_in(driver, "Do it.")

    assert run.text == "Done."
    assert refused == ["session S has no run under way that could hear it"]


async def test_a_program_goes_on_after_it_cancelled_around_a_stream(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(faults.stall(), says("Hello."))
    agent = Agent(name_of(server), journal=journal)

    with anyio.CancelScope() as scope:
        async with agent.stream("Think.") as events:
            async for _ in events:
                scope.cancel()
    run = await agent.run("Hi.")

    assert scope.cancelled_caught
    assert run.text == "Hello."


class FullBook:
    """On a disk that may be full: what is appended then is promised, and the promise broken."""

    def __init__(self, book: Book, disk: "FullDisk") -> None:
        self._book = book
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._book, name)

    def append(self, events: Sequence[Event], state: State) -> Written:
        return self if self._disk.full else self._book.append(events, state)

    async def wait(self) -> None:
        raise JournalError("the disk is full")

    async def close(self) -> None:
        await self._book.close()
        if self._disk.full:
            raise JournalError("the disk is full")


class FullDisk(MemoryJournal):
    full = False

    async def create(self, **about: Any) -> Any:
        return FullBook(await super().create(**about), self)


async def test_an_answer_that_cannot_be_saved_is_in_the_error_that_says_so(
    model_server: StartsServers,
) -> None:
    server = model_server(calls("fill"), says("The answer."))
    journal = FullDisk()

    @tool(effect="read")
    def fill() -> str:
        "Fills the disk."
        journal.full = True
        return "full"

    agent = Agent(name_of(server), tools=[fill], journal=journal)
    with pytest.raises(Broken, match="the disk is full") as raised:
        await agent.run("Ask.")

    assert raised.value.stopped == RunStopped(StopReason.ANSWERED, "The answer.")


async def test_a_watcher_that_is_cancelled_while_it_reads_misses_nothing(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("double", number=1), says("Two."))
    async with (
        Agent(name_of(server), tools=[double], journal=journal) as agent,
        agent.engine.session() as driver,
    ):
        await agent.run_in(driver, "Double one.")
        watcher = driver.bus.watch(after=0)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anext(watcher)
        watcher.close()
        seen = [shown async for shown in watcher]

    assert seen == await journal.read(driver.id)


async def test_nothing_is_shown_before_it_is_on_disk(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("double", number=1), says("Two."))
    on_disk: list[bool] = []
    agent = Agent(name_of(server), tools=[double], journal=journal)

    async with agent, agent.engine.session() as driver:
        watcher = driver.bus.watch()

        async def look() -> None:
            async for shown in watcher:
                if isinstance(shown, Stored):
                    on_disk.append(shown in await journal.read(driver.id))

        async with anyio.create_task_group() as group:
            group.start_soon(look)
            await agent.run_in(driver, "Double one.")
            watcher.close()

    assert on_disk
    assert all(on_disk)


def test_a_text_of_brackets_is_not_read_for_ever() -> None:
    assert list(candidates("[" * 200_000)) == []
    assert list(candidates('Here: {"a": [1]} and more')) == ['{"a": [1]}']


async def test_the_time_a_person_takes_to_fill_in_a_form_is_not_the_runs(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("ask"), says("Blue."))
    later = 0.0

    @tool(effect="read")
    async def ask(context: Context) -> str:
        "Asks."
        filled = await context.ask(Form("Which colour?"))
        return str(filled.values)

    agent = Agent(
        name_of(server), tools=[ask], journal=journal, limits=Limits(seconds=3600), attended=True
    )
    async with agent:
        means = agent.engine.means
        clock = means.clock
        means.clock = lambda: clock() + later
        async with agent.stream("Ask me.") as events:
            async for event in events:
                if isinstance(event, Form):
                    later = 86_400.0
                    events.answer(event.call_id, Filled(accepted=True, values={"colour": "blue"}))
            run = await events.result()

    assert (run.reason, run.text) == (StopReason.ANSWERED, "Blue.")


async def test_a_callback_that_fails_costs_nobody_their_run(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(says("One."), says("Two."))

    def fails(task: object) -> None:
        raise ZeroDivisionError

    async with Agent(name_of(server), journal=journal) as agent:
        agent.tasks.notify(fails)
        await (await agent.start("First.")).wait()
        second = await (await agent.start("Second.")).wait()

    assert second.text == "Two."


async def test_a_tool_that_runs_its_own_session_again_is_refused_at_once(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("again"), says("No."))
    agent: Agent

    @tool
    async def again(context: Context) -> str:
        "Runs again."
        return (await agent.run("Again.", session=context.session)).text

    async with Agent(name_of(server), tools=[again], journal=journal) as agent:
        run = await agent.run("Go.")

    (record,) = run.ledger.records
    assert "cannot wait for a run of the same one" in record.detail


async def test_an_approver_that_fails_means_no(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("send"), says("Not sent."))

    @tool(approve=True)
    def send() -> str:
        "Sends."
        raise AssertionError("it must not run")

    def approve(question: Question) -> Answer:
        raise EOFError("there is no terminal")

    agent = Agent(name_of(server), tools=[send], journal=journal, approve=approve)
    run = await agent.run("Send it.")

    (record,) = run.ledger.records
    assert record.detail == snapshot(
        "Not run. It was not allowed: asking failed: EOFError('there is no terminal')"
    )


# --- runs that a crash left open --------------------------------------------------------------------


async def left_open(agent: Agent, journal: SqliteJournal, at: type[object]) -> str:
    """A session whose process died when this event was on disk."""
    run = await agent.run("Send it.")
    log = [stored.event for stored in await journal.read(run.session_id)]
    last = next(place for place, event in enumerate(log) if isinstance(event, at))
    return await journal.fork(run.session_id, last)


async def test_words_after_a_crash_are_heard_before_anything_else_is_done(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("send"), says("Sent."), says("All right."))
    sent: list[str] = []

    @tool
    def send() -> str:
        "Sends."
        sent.append("mail")
        return "sent"

    agent = Agent(name_of(server), tools=[send], journal=journal)
    session = await left_open(agent, journal, ToolStarted)
    run = await agent.run("Never mind.", session=session)

    assert (run.text, sent) == ("All right.", ["mail"])
    events = [stored.event for stored in await journal.read(session)]
    assert told(events) == snapshot(
        [
            "user: Send it.",
            "model: send({})",
            "c00000001: allowed by tool",
            "reopened",
            "c00000001: Not run: the program stopped before this call began, and the user has said something sin…",
            "user: Never mind.",
            "steered",
            "model: All right.",
            "stopped, answered: All right.",
        ]
    )


async def test_a_run_that_a_crash_left_open_can_be_given_up(
    model_server: StartsServers, journal: SqliteJournal
) -> None:
    server = model_server(calls("double", number=1), says("Two."))
    agent = Agent(name_of(server), tools=[double], journal=journal)
    session = await left_open(agent, journal, ToolStarted)

    given_up = await agent.cancel(session)

    assert (given_up, await agent.cancel(session)) == (True, False)
    assert (await journal.about(session)).status == "cancelled"
    assert await agent.resume(session) is None


def test_cancelled_runs_leave_no_thread_behind(
    model_server: StartsServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    server = model_server(then=faults.stall())
    agent = Agent(name_of(server))

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(agent.run, "Think.")
            before = len(server.chats)
            await anyio.to_thread.run_sync(server.wait_for, lambda: len(server.chats) > before)
            group.cancel_scope.cancel()

    for _ in range(3):
        anyio.run(cancelled)

    names = [thread.name for thread in threading.enumerate()]
    assert "holdfast-journal" not in names
