"""Whole runs with the tools that come with us: in a real folder, with real commands."""

import os
import subprocess
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest
from inline_snapshot import snapshot

from holdfast.agent import Agent
from holdfast.core.events import Outcome, ToolFinished
from holdfast.core.limits import StopReason
from holdfast.journal.sqlite import SqliteJournal
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says, several, wants
from holdfast.tools import sandbox
from holdfast.tools.base import Binary, Output, Progress, Tool, ToolError
from holdfast.tools.builtin import builtin_tools
from holdfast.tools.door import Answer, Question
from holdfast.tools.function import tool
from holdfast.tools.undo import Fate, Restored
from tests.agent.whole import Mode, log_of, name_of, results_in, settings

WINDOW = 32_768
held = pytest.mark.skipif(
    not (sandbox.found().files and sandbox.found().network),
    reason="this machine has no sandbox that holds files and connections",
)


def yes(asked: list[Question]) -> Callable[[Question], Answer]:
    def approve(question: Question) -> Answer:
        asked.append(question)
        return Answer(allowed=True)

    return approve


# --- files ----------------------------------------------------------------------------------------


async def test_an_edit_is_shown_as_a_diff_before_it_is_made_and_can_be_taken_back(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    script = work / "hello.sh"
    before = b"#!/bin/sh\r\necho hello\r\n"
    script.write_bytes(before)
    script.chmod(0o750)
    server = model_server(
        calls("read_file", path="hello.sh"),
        calls("edit_file", path="hello.sh", old="hello", new="goodbye"),
        says("It says goodbye."),
        says("I see."),
        window=WINDOW,
    )
    asked: list[Question] = []
    agent = Agent(
        name_of(server),
        tools=builtin_tools(),
        journal=journal,
        workspace=work,
        approve=yes(asked),
    )

    run = await agent.run("Let it say goodbye.")
    changed = (script.read_bytes(), script.stat().st_mode & 0o777)
    script.chmod(0o700)
    undone = await agent.undo(run.session_id)
    restored = (script.read_bytes(), script.stat().st_mode & 0o777)
    await agent.run("What is in it now?", session=run.session_id)

    assert [(each.call.name, each.preview) for each in asked] == snapshot(
        [
            (
                "edit_file",
                """\
--- a/hello.sh
+++ b/hello.sh
@@ -1,2 +1,2 @@
 #!/bin/sh
-echo hello
+echo goodbye\
""",
            )
        ]
    )
    assert changed == (b"#!/bin/sh\r\necho goodbye\r\n", 0o750)
    assert undone == (Restored(script, Fate.RESTORED),)
    assert restored == (before, 0o750)
    assert server.chats[-1].body["messages"][-1]["content"] == (
        f"[The user took back the changes to {script.name}]\n\nWhat is in it now?"
    )
    log = await log_of(journal, run.session_id, width=500)
    assert [line.replace(str(work), "WORK") for line in log] == snapshot(
        [
            "user: Let it say goodbye.",
            'model: read_file({"path": "hello.sh"})',
            "c00000001: #!/bin/sh echo hello",
            'model: edit_file({"path": "hello.sh", "old": "hello", "new": "goodbye"})',
            "c00000002: allowed by user",
            "c00000002: kept WORK/hello.sh",
            "c00000002: Replaced 1 place in hello.sh. --- a/hello.sh +++ b/hello.sh @@ -1,2 +1,2 @@ #!/bin/sh -echo hello +echo goodbye",
            "model: It says goodbye.",
            "stopped, answered: It says goodbye.",
            "undo: kept WORK/hello.sh",
            "restored: hello.sh",
            "user: What is in it now?",
            "model: I see.",
            "stopped, answered: I see.",
        ]
    )


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
async def test_a_file_outside_the_workspace_is_asked_about_in_every_mode(
    model_server: StartsServers, journal: SqliteJournal, work: Path, mode: Mode
) -> None:
    outside = work.parent / "outside.txt"
    server = model_server(
        calls("write_file", path="../outside.txt", content="out"), says("Done."), window=WINDOW
    )
    asked: list[Question] = []
    agent = Agent(
        name_of(server),
        tools=builtin_tools(),
        journal=journal,
        workspace=work,
        approve=yes(asked),
        settings=settings(work, mode),
    )

    await agent.run("Write it beside the folder.")

    assert [each.why for each in asked] == [f"{outside} is outside the workspace."]
    assert outside.read_text() == "out"


@pytest.mark.parametrize("mode", ["plan", "ask", "accept-edits", "auto", "deny"])
async def test_a_file_outside_the_workspace_is_not_written_when_nobody_is_there(
    model_server: StartsServers, journal: SqliteJournal, work: Path, mode: Mode
) -> None:
    server = model_server(
        calls("write_file", path="../outside.txt", content="out"), says("No."), window=WINDOW
    )
    agent = Agent(
        name_of(server),
        tools=builtin_tools(),
        journal=journal,
        workspace=work,
        settings=settings(work, mode),
    )

    run = await agent.run("Write it beside the folder.")

    (record,) = run.ledger.records
    assert record.outcome is Outcome.NOT_RUN
    assert not (work.parent / "outside.txt").exists()


async def test_plan_mode_says_no_to_an_edit_in_words_the_model_can_use(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    (work / "a.txt").write_text("a")
    server = model_server(
        calls("read_file", path="a.txt"),
        calls("write_file", path="a.txt", content="b"),
        says("The plan is to write b."),
        window=WINDOW,
    )
    asked: list[Question] = []
    agent = Agent(
        name_of(server),
        tools=builtin_tools(),
        journal=journal,
        workspace=work,
        approve=yes(asked),
        settings=settings(work, "plan"),
    )

    await agent.run("Plan it.")

    assert (asked, (work / "a.txt").read_text()) == ([], "a")
    assert results_in(server) == snapshot(
        [
            "a",
            "Not run. Plan mode is on: only looking is possible now, and nothing was changed. Go on reading, then present your plan; the user will leave plan mode if they want it done.",
        ]
    )


# --- commands -------------------------------------------------------------------------------------


@held
async def test_a_command_in_the_sandbox_cannot_write_outside_even_if_a_person_allowed_it(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    server = model_server(
        calls("run_shell", command="echo in > in.txt; echo out > ../out.txt"),
        says("Only inside."),
        window=WINDOW,
    )
    asked: list[Question] = []
    agent = Agent(
        name_of(server),
        tools=builtin_tools(),
        journal=journal,
        workspace=work,
        approve=yes(asked),
        settings=settings(work, "auto"),
    )

    await agent.run("Write both.")

    assert [each.why for each in asked] == snapshot(
        ["It writes to ../out.txt, which is outside the workspace."]
    )
    (result,) = results_in(server)
    assert result.startswith("exit code: 1\n")
    assert result.endswith(
        "[The sandbox lets commands write only in the workspace and $TMPDIR. Write there instead.]"
    )
    assert (work / "in.txt").read_text() == "in\n"
    assert not (work.parent / "out.txt").exists()


@held
async def test_a_command_in_a_sandbox_for_reading_writes_nothing_in_the_workspace(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    (work / "a.txt").write_text("a")
    server = model_server(
        calls("run_shell", command='cat a.txt > "$TMPDIR/b" && cat "$TMPDIR/b" && rm a.txt'),
        says("It cannot be removed."),
        window=WINDOW,
    )
    agent = Agent(
        name_of(server),
        tools=builtin_tools(sandbox="read-only"),
        journal=journal,
        workspace=work,
        approve=lambda question: True,
        settings=settings(work, "auto"),
    )

    await agent.run("Remove it.")

    (result,) = results_in(server)
    assert result.startswith("exit code: 1\n\nstdout:\na\n")
    assert result.endswith(
        "[The sandbox lets commands write only in $TMPDIR. Write there instead.]"
    )
    assert (work / "a.txt").read_text() == "a"


async def test_a_command_that_destroys_is_asked_about_although_everything_else_is_free(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    server = model_server(
        calls("run_shell", command="echo free"),
        calls("run_shell", command="git reset --hard HEAD~3"),
        says("I left it."),
        window=WINDOW,
    )
    asked: list[Question] = []

    def no(question: Question) -> Answer:
        asked.append(question)
        return Answer(allowed=False, words="I need those commits")

    agent = Agent(
        name_of(server),
        tools=builtin_tools(sandbox="off"),
        journal=journal,
        workspace=work,
        approve=no,
        settings=settings(work, "auto"),
    )

    run = await agent.run("Go back.")

    assert [(each.touch.subjects, each.why, each.suggestion) for each in asked] == snapshot(
        [(("git reset --hard 'HEAD~3'",), "'git' throws away changes that are not committed.", "")]
    )
    assert [record.detail for record in run.ledger.records] == snapshot(
        ["exit code: 0 free", "Not run. The user said no: I need those commits"]
    )


async def test_cancelling_a_command_leaves_none_of_its_processes(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    ids = work / "ids"
    os.mkfifo(ids)
    command = "sleep 600 & setsid sleep 600 & echo $$ $(jobs -p) > ids; wait"
    server = model_server(calls("run_shell", command=command), says("Stopped."), window=WINDOW)
    async with Agent(
        name_of(server),
        tools=builtin_tools(sandbox="off"),
        journal=journal,
        workspace=work,
        settings=settings(work, "auto"),
        approve=lambda question: True,
    ) as agent:
        task = await agent.start("Wait.")
        with anyio.fail_after(30):
            began = await anyio.to_thread.run_sync(ids.read_text, abandon_on_cancel=True)
        task.cancel()
        run = await task.wait()

    numbers = [int(word) for word in began.split()]
    assert (len(numbers), run.reason) == (3, StopReason.CANCELLED)
    assert [number for number in numbers if is_running(number)] == []
    log = await log_of(journal, run.session_id)
    assert log[3:] == snapshot(
        [
            "cancel",
            "c00000001: unknown: Cancelled by the user while this tool was running. It may or may not have taken…",
            "stopped, cancelled: The run stopped (cancelled) without an answer from the model. What was really d…",
        ]
    )


def is_running(number: int) -> bool:
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, check=False
    )
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")


# --- results --------------------------------------------------------------------------------------


async def test_a_long_result_is_cut_and_the_model_reads_on_page_by_page(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    lines = [f"line {number}" for number in range(4_000)]
    whole = "\n".join(lines)

    @tool(effect="read")
    def report() -> str:
        "All of it."
        return whole

    server = model_server(
        calls("report"),
        calls("read_result", call_id="c00000001", offset=20_000, limit=100),
        calls("read_result", call_id="c00000001", contains="line 3999"),
        says("It has 4000 lines."),
        window=WINDOW,
    )
    agent = Agent(name_of(server), tools=[report], journal=journal, workspace=work)

    run = await agent.run("How long is it?")

    cut, *pages = results_in(server)
    events = [stored.event for stored in await journal.read(run.session_id)]
    kept = [event.text for event in events if isinstance(event, ToolFinished)]
    assert kept[0] == whole
    assert len(cut) < 8_000
    assert "read_result" in cut
    assert pages == [
        f"{whole[20_000:20_100]}\n[chars 20000-20100 of {len(whole)}; offset=20100 reads on]",
        f"offset {whole.index('line 3999')}: line 3999",
    ]


async def test_a_tool_that_was_left_out_is_found_and_called(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    server = model_server(
        calls("find_tools", query="weigh a parcel"),
        calls("weigh_parcel", text="the red one"),
        says("Two kilos."),
        window=8_192,
    )
    agent = Agent(
        name_of(server),
        tools=[*(filler(number) for number in range(60)), weigh()],
        journal=journal,
        workspace=work,
    )

    run = await agent.run("Tell me the height of the tower.")

    offered = [{each["function"]["name"] for each in chat.body["tools"]} for chat in server.chats]
    assert ["weigh_parcel" in names for names in offered] == [False, True, True]
    assert run.text == "Two kilos."
    assert [record.detail for record in run.ledger.records][1] == "2 kg: the red one"


def filler(number: int) -> Tool:
    async def run(text: str) -> str:
        return text

    run.__name__ = f"tower_height_{number}"
    run.__doc__ = f"Tell the height of tower number {number}, in metres, with its name. " * 4
    made: Tool = tool(effect="read")(run)
    return made


def weigh() -> Tool:
    @tool(effect="read")
    def weigh_parcel(text: str) -> str:
        "Put a parcel on the scales."
        return f"2 kg: {text}"

    return weigh_parcel


async def steps() -> AsyncIterator[object]:
    yield Progress("half way", 1, 2)
    yield "there"


def fails() -> str:
    raise ToolError("the drawer is locked")


def breaks() -> str:
    raise KeyError("drawer")


PNG = b"\x89PNG\r\n\x1a\n rest"


@pytest.mark.parametrize(
    ("returned", "text", "kept"),
    [
        (lambda: b"plain", "plain", []),
        (lambda: b"\xff\xfe\x00", "[application/octet-stream, 3 bytes: kept for the user; you cannot see it]", [b"\xff\xfe\x00"]),
        (lambda: PNG, "[image/png, 13 bytes: kept for the user; you cannot see it]", [PNG]),
        (lambda: Output("see", (Binary(PNG, "image/png", "a.png"),)), "see\n[a.png, image/png, 13 bytes: kept for the user; you cannot see it]", [PNG]),
        (steps, "there", []),
        (fails, "the drawer is locked", []),
        (breaks, "KeyError: 'drawer'. The tool did not expect this error. Other arguments or another tool may work.", []),
        (lambda: ValueError("a value"), "ValueError: a value", []),
        (lambda: "a\0b", "a\ufffdb", []),
        (lambda: "a\ud800b", "a\ufffdb", []),
        (lambda: {"a\ud800": "\0"}, '{"a\ufffd": "\\u0000"}', []),
        (lambda: None, "", []),
    ],
)  # fmt: skip
async def test_whatever_a_tool_returns_reaches_model_log_and_watchers(
    model_server: StartsServers,
    journal: SqliteJournal,
    work: Path,
    returned: Callable[[], object],
    text: str,
    kept: list[bytes],
) -> None:
    server = model_server(calls("look"), says("I see."), window=WINDOW)
    look: Tool = tool(name="look", effect="read")(returned)
    agent = Agent(name_of(server), tools=[look], journal=journal, workspace=work)

    async with agent.stream("Look.") as events:
        seen = [event async for event in events]
        run = await events.result()

    (stored,) = [
        each.event
        for each in await journal.read(run.session_id)
        if isinstance(each.event, ToolFinished)
    ]
    assert results_in(server) == [text or "(no output)"]
    assert stored.text == text
    assert [await journal.blob(each.blob) for each in stored.attached] == kept
    assert [event for event in seen if isinstance(event, ToolFinished)] == [stored]
    told = [Progress("half way", 1, 2)] if returned is steps else []
    assert [event for event in seen if isinstance(event, Progress)] == told


async def test_fifty_megabytes_are_kept_and_the_model_sees_a_piece(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    server = model_server(calls("flood"), says("That is a lot."), window=WINDOW)

    @tool(effect="read")
    def flood() -> str:
        "Floods."
        return "0123456789" * 5_000_000

    agent = Agent(name_of(server), tools=[flood], journal=journal, workspace=work)
    run = await agent.run("Flood us.")

    (cut,) = results_in(server)
    (stored,) = [
        each.event
        for each in await journal.read(run.session_id)
        if isinstance(each.event, ToolFinished)
    ]
    assert run.text == "That is a lot."
    assert len(stored.text) == 50_000_000
    assert len(cut) < 8_000


# --- several calls --------------------------------------------------------------------------------


async def test_calls_that_only_look_run_at_the_same_time(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    here, there = anyio.Event(), anyio.Event()

    @tool(effect="read")
    async def left() -> str:
        "Waits for the other one."
        here.set()
        await there.wait()
        return "left"

    @tool(effect="read")
    async def right() -> str:
        "Waits for the other one."
        there.set()
        await here.wait()
        return "right"

    server = model_server(several(wants("left"), wants("right")), says("Both."), window=WINDOW)
    agent = Agent(name_of(server), tools=[left, right], journal=journal, workspace=work)

    with anyio.fail_after(30):
        await agent.run("Look at both.")

    assert results_in(server) == ["left", "right"]


async def test_reads_of_blocking_functions_overlap_too(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    both = threading.Barrier(2)

    @tool(effect="read")
    def meet(name: str) -> str:
        "Waits for the other one."
        both.wait(30)
        return name

    server = model_server(
        several(wants("meet", name="a"), wants("meet", name="b")), says("Both."), window=WINDOW
    )
    agent = Agent(name_of(server), tools=[meet], journal=journal, workspace=work)

    await agent.run("Look at both.")

    assert results_in(server) == ["a", "b"]


async def test_calls_that_change_something_run_in_the_order_of_the_model(
    model_server: StartsServers, journal: SqliteJournal, work: Path
) -> None:
    server = model_server(
        several(
            wants("write_file", path="a.txt", content="one\n"),
            wants("edit_file", path="a.txt", old="one", new="two"),
            wants("read_file", path="a.txt"),
            wants("edit_file", path="a.txt", old="two", new="three"),
        ),
        says("Three."),
        window=WINDOW,
    )
    agent = Agent(
        name_of(server),
        tools=builtin_tools(),
        journal=journal,
        workspace=work,
        settings=settings(work, "accept-edits"),
    )

    await agent.run("Count.")

    assert results_in(server)[2] == "two"
    assert (work / "a.txt").read_text() == "three\n"
