"""What the reference servers answer when it is us who call."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import anyio

from holdfast.core.tools import SideEffect
from holdfast.tools.base import Filled, Output, Progress
from holdfast.tools.mcp import Patience, Server, State
from holdfast.tools.mcp.asking import Sampling
from tests.tools.mcp.watching import Caller, watching

Reference = Callable[..., Server]
CALM = Patience()


async def test_everything_answers(node: Reference) -> None:
    async with watching(node("everything"), patience=CALM) as watch:
        assert await watch.call("everything__echo", {"message": "hi"}) == Output("Echo: hi")
        assert await watch.call("everything__get-sum", {"a": 2, "b": 3}) == Output(
            "The sum of 2 and 3 is 5."
        )
        weather = await watch.call("everything__get-structured-content", {"location": "Chicago"})
        assert set(json.loads(weather.text)) == {"temperature", "conditions", "humidity"}
        picture = await watch.call("everything__get-tiny-image")
        assert [(one.media, one.data[:4]) for one in picture.binaries] == [
            ("image/png", b"\x89PNG")
        ]
        links = await watch.call("everything__get-resource-links", {"count": 2})
        assert links.text.count("](demo://resource/") == 2


async def test_everything_tells_its_progress_and_can_be_cancelled(node: Reference) -> None:
    caller = Caller()
    async with watching(node("everything"), patience=CALM) as watch:
        work = "everything__trigger-long-running-operation"
        await watch.call(work, {"duration": 0.2, "steps": 2}, caller)
        assert caller.told == [Progress("", 1, 2), Progress("", 2, 2)]

        with anyio.move_on_after(0.2) as time:
            await watch.call(work, {"duration": 60, "steps": 60})
        assert time.cancelled_caught
        assert await watch.call("everything__echo", {"message": "hi"}) == Output("Echo: hi")


async def test_everything_asks_the_person(node: Reference) -> None:
    caller = Caller(answer=Filled(accepted=True, values={"name": "Ada"}))
    async with watching(node("everything"), patience=CALM) as watch:
        found = await watch.call("everything__trigger-elicitation-request", caller=caller)

    assert "Ada" in found.text
    assert len(caller.asked) == 1


async def test_everything_asks_a_model(node: Reference) -> None:
    async def sample(server: str, wanted: Sampling) -> str:
        return f"{len(wanted.messages)} message for {server}"

    async with watching(node("everything"), patience=CALM, sample=sample) as watch:
        found = await watch.call("everything__trigger-sampling-request", {"prompt": "2 + 2?"})

    assert "1 message for everything" in found.text


async def test_files_are_written_and_read_but_not_outside(node: Reference, tmp_path: Path) -> None:
    server = node("filesystem", str(tmp_path), trust=True)
    note = str(tmp_path / "note.txt")
    async with watching(server, patience=CALM, workspace=tmp_path) as watch:
        await watch.call("filesystem__write_file", {"path": note, "content": "hello"})
        assert await watch.call("filesystem__read_text_file", {"path": note}) == Output("hello")
        outside = await watch.call("filesystem__read_text_file", {"path": "/etc/passwd"})
        assert outside.failed
        assert "Access denied" in outside.text
        effects = {tool.name: tool.spec.effect for tool in watch.servers.tools}

    assert effects["filesystem__read_text_file"] is SideEffect.READ
    assert effects["filesystem__edit_file"] is SideEffect.UNSAFE


async def test_memory_outlives_its_server(node: Reference, tmp_path: Path) -> None:
    server = node("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})
    ada = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
    async with watching(server, patience=CALM) as watch:
        await watch.call("memory__create_entities", {"entities": [ada]})
        watch.servers.restart("memory")
        await watch.until(lambda watch: len(watch.offered) >= 3 and watch.offered[-1][1] != ())
        found = await watch.call("memory__open_nodes", {"names": ["Ada"]})

    assert json.loads(found.text)["entities"] == [ada]


async def test_git_and_time_start_slowly_and_answer(pip: Reference, tmp_path: Path) -> None:
    await anyio.run_process(["git", "init", "-q", str(tmp_path)])
    async with watching(pip("git"), pip("time"), patience=CALM, workspace=tmp_path) as watch:
        status = await watch.call("git__git_status", {"repo_path": str(tmp_path)})
        wrong = await watch.call("time__get_current_time", {"timezone": "Mars/Base"})

    assert "No commits yet" in status.text
    assert wrong.failed


async def test_a_reference_server_that_is_killed_comes_back(node: Reference) -> None:
    server = node("everything")
    async with watching(server, patience=CALM) as watch:
        os.kill(child(), signal.SIGKILL)
        await watch.until_told(lambda status: status.state is State.WAITING)
        assert await watch.servers.ready(20)
        await watch.until(lambda watch: watch.states("everything")[-1] is State.CONNECTED)
        assert await watch.call("everything__echo", {"message": "hi"}) == Output("Echo: hi")


def child() -> int:
    """The process that this one started."""
    tasks = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return int(tasks.read_text().split()[-1])
