"""The one way to every tool. The door is a list; the tools are real coroutines and threads."""

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from holdfast.core.events import (
    USER,
    Attached,
    Decided,
    FromTheWorld,
    Outcome,
    ToolFinished,
    ToolStarted,
    Verdict,
)
from holdfast.core.jsontext import dumped
from holdfast.core.messages import ToolCall
from holdfast.core.tools import SideEffect
from holdfast.tools import running
from holdfast.tools.base import (
    Access,
    Arguments,
    Binary,
    Context,
    Filled,
    Form,
    Output,
    Progress,
    Run,
    Tool,
    ToolError,
)
from holdfast.tools.files import file_tools
from holdfast.tools.function import tool
from holdfast.tools.gateway import Answer, Gateway, Permissions, Scope, Toolbox
from holdfast.tools.permissions import Mode, Rules

from .door import NO, YES, Hand, ListDoor, a_tool

SHELL = a_tool("run_shell", access=Access.EXECUTE, subject="command")
WRITE = a_tool("write_file", access=Access.EDIT, subject="path")
STARTED = ToolStarted("c1", 1.0)
PERHAPS = "It may or may not have taken effect. Check before you call it again."


def gateway(*tools: Tool, mode: Mode = Mode.ASK, rules: Rules | None = None) -> Gateway:
    permissions = Permissions(mode, rules or Rules())
    return Gateway(Toolbox(tools), Path("/project"), permissions=permissions, grace=0.05)


def call(name: str, arguments: str = "{}", number: int = 1) -> ToolCall:
    return ToolCall(f"c{number}", name, arguments)


def finished(outcome: Outcome, text: str, number: int = 1) -> ToolFinished:
    return ToolFinished(f"c{number}", outcome, text, 1.0)


def decided(
    verdict: Verdict, by: str = USER, *, arguments: str = "", grants: str = "", words: str = ""
) -> Decided:
    return Decided("c1", verdict, 1.0, by, arguments=arguments, grants=grants, words=words)


async def performed(
    gate: Gateway, wanted: ToolCall, door: ListDoor | None = None, *, verdict: Verdict | None = None
) -> list[FromTheWorld]:
    door = door or ListDoor()
    with anyio.fail_after(5):
        await gate.perform(wanted, door, verdict=verdict)
    return door.events


async def came_of(run: Run, *, within: float | None = None) -> list[FromTheWorld]:
    return await performed(gateway(a_tool("look", run, timeout=within)), call("look"))


# --- finding and reading ----------------------------------------------------------------------


async def test_a_tool_that_only_looks_runs_without_a_decision() -> None:
    door = ListDoor()

    events = await performed(gateway(a_tool("look")), call("look", '{"a": 1}'), door)

    assert events == [STARTED, finished(Outcome.DONE, '{"a": 1}')]
    assert door.durable == []


async def test_a_tool_that_does_not_exist_is_answered_with_the_one_that_was_meant() -> None:
    assert await performed(gateway(a_tool("look")), call("lok")) == [
        finished(Outcome.NOT_RUN, "There is no tool named 'lok'. Did you mean: look?")
    ]


async def test_arguments_that_the_tool_cannot_take_are_not_run() -> None:
    assert await performed(gateway(a_tool("look")), call("look", '{"wrong": 1}')) == [
        finished(Outcome.NOT_RUN, "There is no parameter 'wrong'.")
    ]


async def test_a_bug_in_reading_the_arguments_is_told_as_what_it_is() -> None:
    events = await performed(gateway(a_tool("look")), call("look", "{"))

    assert [type(event) for event in events] == [ToolFinished]
    assert isinstance(events[0], ToolFinished)
    assert events[0].outcome is Outcome.NOT_RUN
    assert events[0].text.startswith("JSONDecodeError: ")


# --- permission -------------------------------------------------------------------------------


async def test_the_start_of_what_changes_something_is_on_disk_before_it_runs() -> None:
    door = ListDoor()
    seen: list[FromTheWorld] = []

    async def run(arguments: Arguments, context: Context) -> object:
        seen.extend(door.durable)
        return "ok"

    write = a_tool("write_file", run, access=Access.EDIT)
    await performed(gateway(write, mode=Mode.AUTO), call("write_file"), door)

    assert seen == [STARTED]
    assert door.events == [
        decided(Verdict.ALLOWED, "mode auto"),
        STARTED,
        finished(Outcome.DONE, "ok"),
    ]


async def test_what_a_rule_forbids_is_refused_in_words_for_the_model() -> None:
    gate = gateway(SHELL, mode=Mode.AUTO, rules=Rules.parse(deny=["run_shell(rm *)"]))

    assert await performed(gate, call("run_shell", '{"command": "rm x"}')) == [
        decided(Verdict.REFUSED, "rule run_shell(rm *)"),
        finished(
            Outcome.NOT_RUN,
            "Not run. The user's rules forbid this: run_shell(rm *). Do not try to get round it; "
            "say what you could not do.",
        ),
    ]


async def test_a_no_with_words_reaches_the_model() -> None:
    door = ListDoor([Answer(allowed=False, words="use the staging server")])

    events = await performed(gateway(SHELL), call("run_shell", '{"command": "deploy"}'), door)

    assert events == [
        decided(Verdict.REFUSED, words="use the staging server"),
        finished(Outcome.NOT_RUN, "Not run. The user said no: use the staging server"),
    ]


async def test_a_person_is_shown_what_would_happen_and_a_rule_for_next_time() -> None:
    async def diff(arguments: Arguments, workspace: Path) -> str:
        return f"+{arguments['path']}"

    door = ListDoor([YES])
    write = Tool(spec=WRITE.spec, parse=WRITE.parse, touch=WRITE.touch, run=WRITE.run, preview=diff)

    await performed(gateway(write), call("write_file", '{"path": "/project/src/a.py"}'), door)

    [question] = door.questions
    assert question.touch.subjects == ("src/a.py",)
    assert (question.why, question.preview, question.suggestion) == (
        "write_file changes files.",
        "+/project/src/a.py",
        "edit(src/**)",
    )
    assert door.events[0] == decided(Verdict.ALLOWED)


async def test_a_preview_that_fails_does_not_keep_the_question_away() -> None:
    async def diff(arguments: Arguments, workspace: Path) -> str:
        raise OSError("no such file")

    door = ListDoor([NO])
    write = Tool(spec=WRITE.spec, parse=WRITE.parse, touch=WRITE.touch, run=WRITE.run, preview=diff)

    await performed(gateway(write), call("write_file", '{"path": "a.py"}'), door)

    assert door.questions[0].preview == "(There is no preview: OSError: no such file)"


async def test_a_yes_for_the_session_grants_the_rule_that_was_offered() -> None:
    door = ListDoor([Answer(allowed=True, scope=Scope.SESSION)])
    wanted = call("run_shell", '{"command": "git diff HEAD"}')

    await performed(gateway(SHELL), wanted, door)

    assert door.events[0] == decided(Verdict.ALLOWED, grants="run_shell(git diff *)")
    again = ListDoor(granted=("run_shell(git diff *)",))
    events = await performed(gateway(SHELL), wanted, again)
    assert events[0] == decided(Verdict.ALLOWED, "rule run_shell(git diff *)")


async def test_a_yes_for_good_is_stored() -> None:
    stored: list[str] = []
    gate = Gateway(
        Toolbox([SHELL]), Path("/project"), permissions=Permissions(), always=stored.append
    )
    door = ListDoor([Answer(allowed=True, scope=Scope.ALWAYS)])

    await performed(gate, call("run_shell", '{"command": "git diff"}'), door)

    assert stored == ["run_shell(git diff *)"]
    assert door.events[0] == decided(Verdict.ALLOWED, grants="run_shell(git diff *)")


async def test_a_yes_to_a_danger_counts_once_whatever_was_answered() -> None:
    risky = a_tool("run_shell", access=Access.EXECUTE, subject="command", danger="it destroys")
    door = ListDoor([Answer(allowed=True, scope=Scope.ALWAYS)])

    await performed(gateway(risky), call("run_shell", '{"command": "rm -rf /"}'), door)

    assert door.questions[0].suggestion == ""
    assert door.questions[0].why == "It destroys."
    assert door.events[0] == decided(Verdict.ALLOWED)


async def test_no_rule_is_offered_that_an_ask_rule_would_overrule() -> None:
    door = ListDoor([NO])
    gate = gateway(SHELL, rules=Rules.parse(ask=["run_shell(git push *)"]))

    await performed(gate, call("run_shell", '{"command": "git push"}'), door)

    assert door.questions[0].suggestion == ""


async def test_arguments_that_the_person_changed_are_the_ones_that_run() -> None:
    changed = '{"command": "ls -l"}'
    door = ListDoor([Answer(allowed=True, arguments=changed, scope=Scope.SESSION)])

    events = await performed(gateway(SHELL), call("run_shell", '{"command": "ls"}'), door)

    assert events == [
        decided(Verdict.ALLOWED, arguments=changed),
        STARTED,
        finished(Outcome.DONE, '{"command": "ls -l"}'),
    ]


async def test_deny_wins_over_arguments_that_the_person_changed() -> None:
    door = ListDoor([Answer(allowed=True, arguments='{"command": "rm x"}')])
    gate = gateway(SHELL, rules=Rules.parse(deny=["run_shell(rm *)"]))

    events = await performed(gate, call("run_shell", '{"command": "ls"}'), door)

    assert events[0] == decided(Verdict.REFUSED, "rule run_shell(rm *)")
    assert [type(event) for event in events] == [Decided, ToolFinished]


async def test_changed_arguments_that_make_no_sense_are_not_run() -> None:
    door = ListDoor([Answer(allowed=True, arguments='{"wrong": 1}')])

    events = await performed(gateway(SHELL), call("run_shell", '{"command": "ls"}'), door)

    words = "the changed arguments cannot be used: There is no parameter 'wrong'."
    assert events == [
        decided(Verdict.REFUSED, words=words),
        finished(
            Outcome.NOT_RUN,
            "The user changed the arguments of this call. Not run: There is no parameter 'wrong'.",
        ),
    ]


async def test_what_was_allowed_before_a_crash_is_not_asked_again() -> None:
    events = await performed(
        gateway(SHELL), call("run_shell", '{"command": "x"}'), verdict=Verdict.ALLOWED
    )

    assert events == [STARTED, finished(Outcome.DONE, '{"command": "x"}')]


async def test_what_was_allowed_before_a_crash_is_refused_if_it_is_forbidden_now() -> None:
    events = await performed(
        gateway(SHELL, mode=Mode.PLAN), call("run_shell"), verdict=Verdict.ALLOWED
    )

    assert events[0] == decided(Verdict.REFUSED, "mode plan")


async def test_what_was_refused_before_a_crash_stays_refused() -> None:
    events = await performed(
        gateway(SHELL, mode=Mode.AUTO), call("run_shell"), verdict=Verdict.REFUSED
    )

    assert events == [finished(Outcome.NOT_RUN, "Not run. The user said no.")]


# --- results ----------------------------------------------------------------------------------


async def test_bytes_are_kept_and_attached() -> None:
    async def run(arguments: Arguments, context: Context) -> object:
        return Output("a picture", (Binary(b"\x89PNG", "image/png", "a.png"),))

    door = ListDoor()
    [_, done] = await performed(gateway(a_tool("look", run)), call("look"), door)

    assert isinstance(done, ToolFinished)
    assert done.attached == (Attached("image/png", 4, "blob 1"),)
    assert door.blobs == [b"\x89PNG"]


async def test_progress_is_told_and_the_last_is_the_result() -> None:
    async def run(arguments: Arguments, context: Context) -> AsyncIterator[object]:
        yield Progress("half", 1, 2)
        yield "done"

    door = ListDoor()
    events = await performed(gateway(a_tool("look", run)), call("look"), door)

    assert door.progress == [Progress("half", 1, 2)]
    assert events == [STARTED, finished(Outcome.DONE, "done")]


async def test_a_tool_says_itself_that_it_failed() -> None:
    async def run(arguments: Arguments, context: Context) -> object:
        return Output("exit code 1", failed=True)

    assert await came_of(run) == [STARTED, finished(Outcome.FAILED, "exit code 1")]


async def test_a_result_too_large_for_the_log_is_cut_and_says_so() -> None:
    async def run(arguments: Arguments, context: Context) -> object:
        return Output("x" * (running.LARGEST + 1), (Binary(b"x" * (running.LARGEST + 1)),))

    door = ListDoor()
    [_, done] = await performed(gateway(a_tool("look", run)), call("look"), door)

    assert isinstance(done, ToolFinished)
    assert len(done.text) < running.LARGEST + 100
    assert done.text.endswith(" chars]")
    assert door.blobs == []


# --- failures ---------------------------------------------------------------------------------

UNEXPECTED = "The tool did not expect this error. Other arguments or another tool may work."


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("No such city."), "No such city."),
        (ValueError("bad date"), f"ValueError: bad date. {UNEXPECTED}"),
        (ExceptionGroup("g", [ExceptionGroup("g", [ToolError("No.")])]), "No."),
        (
            ExceptionGroup("g", [ToolError("No."), KeyError("a")]),
            f"No.\nKeyError: 'a'. {UNEXPECTED}",
        ),
    ],
)
async def test_a_failure_is_told_without_a_traceback(error: Exception, text: str) -> None:
    async def run(arguments: Arguments, context: Context) -> object:
        raise error

    assert await came_of(run) == [STARTED, finished(Outcome.FAILED, text)]


async def test_a_cancellation_that_the_tool_made_itself_is_a_failure() -> None:
    async def run(arguments: Arguments, context: Context) -> object:
        raise anyio.get_cancelled_exc_class()

    assert await came_of(run) == [
        STARTED,
        finished(Outcome.FAILED, "The tool gave up: something it waited for was cancelled."),
    ]


class Interrupt(BaseException):
    """Stands for KeyboardInterrupt, which would end the test run."""


async def test_what_ends_the_program_is_no_failure_of_the_tool() -> None:
    async def run(arguments: Arguments, context: Context) -> object:
        raise Interrupt

    with pytest.raises(Interrupt):
        await came_of(run)


async def test_a_tool_that_ends_the_program_has_failed_and_the_program_goes_on() -> None:
    async def run(arguments: Arguments, context: Context) -> object:
        sys.exit(3)

    assert await came_of(run) == [
        STARTED,
        finished(
            Outcome.FAILED,
            "The tool tried to end the program (SystemExit(3)). It goes on; the tool failed.",
        ),
    ]


INTERRUPTED = """
import anyio
from holdfast.core.messages import ToolCall
from tests.tools.door import ListDoor, a_tool
from tests.tools.test_gateway import gateway

async def run(arguments, context):
    raise KeyboardInterrupt

async def main():
    door = ListDoor()
    try:
        await gateway(a_tool("look", run)).perform(ToolCall("c1", "look", "{}"), door)
    finally:
        print([type(event).__name__ for event in door.events])

anyio.run(main)
"""


def test_an_interrupt_inside_a_tool_ends_the_program_and_leaves_its_outcome_open() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=30
    )

    assert done.returncode != 0
    assert done.stdout == "['ToolStarted']\n"
    assert done.stderr.endswith("KeyboardInterrupt\n")


# --- what must not be seen, or written ----------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (WRITE, '{"path": ".env", "content": "KEY=[secret: api key]"}'),
        (SHELL, '{"command": "echo [secret: named] > a"}'),
        (
            a_tool("fetch", access=Access.NETWORK, effect=SideEffect.READ),
            '{"q": "[secret: token]"}',
        ),
        (a_tool("act", access=Access.READ, effect=SideEffect.UNSAFE), '{"q": "[secret: token]"}'),
    ],
)
async def test_what_stands_for_a_secret_is_not_written_or_sent(tool: Tool, arguments: str) -> None:
    [event] = await performed(gateway(tool, mode=Mode.AUTO), call(tool.name, arguments))

    assert isinstance(event, ToolFinished)
    assert event.outcome is Outcome.NOT_RUN
    assert "it stands where a secret was, which you are not shown" in event.text
    assert "ask the user" in event.text


async def test_what_stands_for_a_secret_may_be_looked_for() -> None:
    looked = '{"q": "[secret: token]"}'

    assert await performed(gateway(a_tool("look")), call("look", looked)) == [
        STARTED,
        finished(Outcome.DONE, looked),
    ]


@pytest.mark.parametrize(
    ("deny", "ask", "path", "left"),
    [
        ([], [], "", ["a/.env", "a/b.txt", "keys/id", "keys/old/id"]),
        (["read(.env)"], [], "", ["a/b.txt", "keys/id", "keys/old/id"]),
        (["read(keys/**)"], [], "", ["a/.env", "a/b.txt"]),
        (["read(keys)"], [], "", ["a/.env", "a/b.txt"]),
        ([], ["read(keys/old/**)"], "", ["a/.env", "a/b.txt", "keys/id"]),
        ([], ["read(keys/**)"], "keys", ["keys/id", "keys/old/id"]),
        (["read(.env)"], ["read(keys/**)"], "keys", ["keys/id", "keys/old/id"]),
        (["edit(.env)", "run_shell(*)", "read(c.txt)"], [], "a", ["a/.env", "a/b.txt"]),
        (["search_files(*.txt)"], [], "a", ["a/.env"]),
    ],
)
@pytest.mark.parametrize("contains", ["KEY", "K(E|X)Y"])
async def test_a_search_leaves_out_what_rules_forbid_or_ask_about(
    deny: list[str], ask: list[str], path: str, left: list[str], contains: str, tmp_path: Path
) -> None:
    for name in ("a/.env", "a/b.txt", "keys/id", "keys/old/id"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("KEY=1\n")
    rules = Rules.parse(deny=deny, ask=ask)
    gate = Gateway(Toolbox(file_tools()), tmp_path, permissions=Permissions(Mode.ASK, rules))
    door = FolderDoor(answers=[YES], root=tmp_path)

    await gate.perform(call("search_files", dumped({"path": path, "contains": contains})), door)

    *_, event = door.events
    assert isinstance(event, ToolFinished)
    lines = event.text.splitlines()
    assert [line.partition(":")[0] for line in lines if not line.startswith("[")] == left
    hidden = (2 if path else 4) - len(left)
    note = (
        f"[{hidden} file{'s' * (hidden > 1)} left out, which the user's rules forbid or ask about]"
    )
    assert lines[len(left) :] == ([note] if hidden else [])


async def test_a_listing_leaves_out_what_rules_forbid_or_ask_about(tmp_path: Path) -> None:
    for name in (".env", "a.txt", "b.txt"):
        (tmp_path / name).write_text("12345")
    rules = Rules.parse(deny=["read(.env)"], ask=["list_dir(b.*)"])
    gate = Gateway(Toolbox(file_tools()), tmp_path, permissions=Permissions(Mode.ASK, rules))
    door = FolderDoor(root=tmp_path)

    await gate.perform(call("list_dir", '{"hidden": true}'), door)

    told = "a.txt  5 B\n[2 left out, which the user's rules forbid or ask about]"
    assert door.events == [STARTED, finished(Outcome.DONE, told)]


@dataclass
class FolderDoor(ListDoor):
    root: Path = Path()

    def context(self, call: ToolCall, tool: Tool) -> Context:
        return Hand(call.id, self.progress.append, workspace=self.root)


# --- time and cancellation --------------------------------------------------------------------


class SlowPerson(ListDoor):
    """Answers when a call that began later, with as little time, has run out of it."""

    def context(self, call: ToolCall, tool: Tool) -> Context:
        return Thinking(call.id, self.progress.append)


class Thinking(Hand):
    async def ask(self, form: Form) -> Filled:
        async def run(arguments: Arguments, context: Context) -> object:
            await anyio.sleep_forever()
            return "never"

        [_, twin] = await came_of(run, within=0.05)
        assert isinstance(twin, ToolFinished)
        return Filled(accepted=twin.outcome is Outcome.TIMED_OUT)


async def test_the_time_a_person_takes_to_answer_is_not_the_tools() -> None:
    async def run(arguments: Arguments, context: Context) -> object:
        async with anyio.create_task_group() as group:  # the first answer does not start the clock
            group.start_soon(context.ask, Form("Who?"))
            group.start_soon(context.ask, Form("Which?"))
        return (await context.ask(Form("When?"))).accepted

    door = SlowPerson()
    events = await performed(gateway(a_tool("look", run, timeout=0.05)), call("look"), door)

    assert events == [STARTED, finished(Outcome.DONE, "true")]


async def test_after_the_answer_the_time_runs_on() -> None:
    async def run(arguments: Arguments, context: Context) -> object:
        await context.ask(Form("Who?"))
        await anyio.sleep_forever()
        return "never"

    assert await came_of(run, within=0.05) == [
        STARTED,
        finished(Outcome.TIMED_OUT, "look was stopped: it took longer than 0.05 seconds."),
    ]


async def test_a_tool_that_takes_too_long_is_stopped() -> None:
    cleaned = anyio.Event()

    async def run(arguments: Arguments, context: Context) -> object:
        try:
            await anyio.sleep_forever()
            return "never"
        finally:
            cleaned.set()

    events = await came_of(run, within=0.01)

    assert cleaned.is_set()
    assert events == [
        STARTED,
        finished(Outcome.TIMED_OUT, "look was stopped: it took longer than 0.01 seconds."),
    ]


async def test_a_tool_that_does_not_stop_is_abandoned_and_its_late_result_recorded() -> None:
    go_on = anyio.Event()

    async def run(arguments: Arguments, context: Context) -> object:
        with anyio.CancelScope(shield=True):
            await go_on.wait()
        return "after all"

    door = ListDoor()
    slow = a_tool("send", run, access=Access.NETWORK, timeout=0.01)
    events = await performed(gateway(slow, mode=Mode.AUTO), call("send"), door)

    assert events[2:] == [
        finished(
            Outcome.TIMED_OUT,
            "send was stopped: it took longer than 0.01 seconds. It did not stop when told to and "
            f"was abandoned; it may still be at work. {PERHAPS}",
        )
    ]
    await next_event(door, go_on.set)
    assert events[3:] == [finished(Outcome.DONE, "after all")]


async def next_event(door: ListDoor, cause: object) -> None:
    door.recorded = anyio.Event()
    assert callable(cause)
    cause()
    with anyio.fail_after(5):
        await door.recorded.wait()


async def test_a_thread_that_does_not_stop_is_abandoned_and_its_late_result_recorded() -> None:
    go_on = threading.Event()

    @tool(timeout=0.01, effect="read")
    def slow() -> str:
        go_on.wait(10)
        return "after all"

    door = ListDoor()
    events = await performed(gateway(slow), call("slow"), door)

    assert isinstance(events[1], ToolFinished)
    assert events[1].outcome is Outcome.TIMED_OUT
    assert "abandoned" in events[1].text
    await next_event(door, go_on.set)
    assert events[2:] == [finished(Outcome.DONE, "after all")]


class CountingDoor(ListDoor):
    begun = 0

    def spawn(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        self.begun += 1
        super().spawn(work)


async def test_steps_that_were_given_up_between_two_bring_no_late_result() -> None:
    go_on = threading.Event()

    def steps() -> Iterator[object]:
        go_on.wait(10)
        yield Progress("half way")
        yield "the other half"

    @tool(timeout=0.01, effect="read")
    def slow() -> Iterator[object]:
        return steps()

    door = CountingDoor()
    events = await performed(gateway(slow), call("slow"), door)
    go_on.set()
    with anyio.fail_after(5):
        while running.hung():
            await anyio.lowlevel.checkpoint()

    assert [getattr(event, "outcome", None) for event in events] == [None, Outcome.TIMED_OUT]
    assert door.begun == 1


async def test_a_late_result_that_nobody_takes_disturbs_nobody() -> None:
    go_on, ended = anyio.Event(), anyio.Event()

    async def run(arguments: Arguments, context: Context) -> object:
        with anyio.CancelScope(shield=True):
            await go_on.wait()
        ended.set()
        return "after all"

    door = ListDoor()
    await performed(gateway(a_tool("look", run, timeout=0.01)), call("look"), door)
    door.closed = True
    go_on.set()

    with anyio.fail_after(5):
        await ended.wait()
    await anyio.lowlevel.checkpoint()
    assert len(door.events) == 2


async def test_a_cancelled_call_records_nothing_more_and_stops_its_tool() -> None:
    begun, stopped = anyio.Event(), anyio.Event()

    async def run(arguments: Arguments, context: Context) -> object:
        begun.set()
        try:
            await anyio.sleep_forever()
            return "never"
        finally:
            stopped.set()

    door = ListDoor()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(gateway(a_tool("look", run)).perform, call("look"), door)
            await begun.wait()
            group.cancel_scope.cancel()

    assert stopped.is_set()
    assert door.events == [STARTED]


async def test_a_cancelled_call_does_not_wait_for_a_tool_that_will_not_stop() -> None:
    begun, go_on = anyio.Event(), anyio.Event()

    async def run(arguments: Arguments, context: Context) -> object:
        begun.set()
        with anyio.CancelScope(shield=True):
            await go_on.wait()
        return "after all"

    door = ListDoor()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(gateway(a_tool("look", run)).perform, call("look"), door)
            await begun.wait()
            group.cancel_scope.cancel()
    assert door.events == [STARTED]

    await next_event(door, go_on.set)
    assert door.events == [STARTED, finished(Outcome.DONE, "after all")]


# --- several calls ----------------------------------------------------------------------------


async def test_calls_that_only_look_run_at_once() -> None:
    meeting = [anyio.Event(), anyio.Event()]

    async def run(arguments: Arguments, context: Context) -> object:
        here = int(str(arguments["n"]))
        meeting[here].set()
        await meeting[1 - here].wait()
        return here

    door = ListDoor()
    calls = [call("look", f'{{"n": {n}}}', n) for n in (0, 1)]
    with anyio.fail_after(5):
        await gateway(a_tool("look", run)).perform_all(calls, door, verdicts={})

    assert sum(isinstance(event, ToolFinished) for event in door.events) == 2


async def test_calls_run_in_their_order_if_one_of_them_changes_something() -> None:
    door = ListDoor()
    calls = [call("write_file", '{"path": "a"}', 1), call("look", "{}", 2), call("gone", "{}", 3)]

    gate = gateway(WRITE, a_tool("look"), mode=Mode.ACCEPT_EDITS)
    await gate.perform_all(calls, door, verdicts={})

    assert [(type(event).__name__, event.call_id) for event in door.events if hasattr(event, "call_id")] == [
        ("Decided", "c1"),
        ("ToolStarted", "c1"),
        ("ToolFinished", "c1"),
        ("ToolStarted", "c2"),
        ("ToolFinished", "c2"),
        ("ToolFinished", "c3"),
    ]  # fmt: skip


async def test_more_blocking_tools_than_threads_do_not_wait_for_each_other() -> None:
    @tool(effect="read")
    def look() -> str:
        return "seen"

    door = ListDoor()
    calls = [call("look", "{}", number) for number in range(128)]
    with anyio.fail_after(30):
        await gateway(look).perform_all(calls, door, verdicts={})

    assert sum(isinstance(event, ToolFinished) for event in door.events) == 128


# --- after a crash ----------------------------------------------------------------------------


async def test_a_tool_that_can_find_out_is_asked_what_became_of_a_call() -> None:
    async def probe(arguments: Arguments, context: Context) -> object:
        return f"sent as {context.key}"

    async def breaks(arguments: Arguments, context: Context) -> object:
        raise OSError

    def sending(probe: object) -> Tool:
        look = a_tool("send", effect=SideEffect.UNSAFE)
        return Tool(
            spec=look.spec,
            parse=look.parse,
            touch=look.touch,
            run=look.run,
            probe=probe,  # type: ignore[arg-type]
        )

    door = ListDoor()
    assert await gateway(sending(probe)).probe(call("send"), door) == Output("sent as s1/c1")
    assert await gateway(sending(breaks)).probe(call("send"), door) is None
    assert await gateway(a_tool("send")).probe(call("send"), door) is None
    assert await gateway().probe(call("send"), door) is None


# --- the toolbox ------------------------------------------------------------------------------


def test_tools_of_a_server_come_and_go_and_those_who_watch_are_told() -> None:
    told: list[list[str]] = []
    box = Toolbox([a_tool("look")])
    stop = box.watch(lambda: told.append([spec.name for spec in box.specs]))

    assert box.put("web", [a_tool("fetch", source="web")])
    assert not box.put("web", [a_tool("fetch", source="web")])
    assert box.put("web", [])
    stop()
    assert box.put("web", [a_tool("fetch", source="web")])

    assert told == [["look", "fetch"], ["look"]]


def test_no_server_takes_the_place_of_a_tool_that_was_there() -> None:
    mine = a_tool("look")
    box = Toolbox([mine])

    others = a_tool("look", access=Access.EXECUTE, source="evil"), a_tool("other", source="evil")
    box.put("evil", others)

    assert box.get("look") is mine
    assert box.specs == (mine.spec, others[1].spec)
    with pytest.raises(ValueError, match="two tools are named 'look'"):
        Toolbox([mine, mine])
