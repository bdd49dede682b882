"""The embedded model with its real engine. See `conftest`."""

import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from anyio import to_thread

from holdfast.core.events import RunStopped, ToolStarted
from holdfast.core.limits import Settings, StopReason
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.models.base import Piece, Waiting
from holdfast.models.chat import Chat
from holdfast.models.local import Local
from holdfast.models.local.engine import Engine
from tests.driving import drive
from tests.models.asking import ignore, outcome, request
from tests.real.conftest import SMOL, found, skip_without_engine

pytestmark = pytest.mark.timeout(180)

CLOCK = ToolSpec(
    name="get_time", description="The current time.", effect=SideEffect.READ, mutates=False
)
SYSTEM = "You are a helpful assistant. Use a tool when you need one, then answer in one sentence."
SHORT = request(tools=(), output=5)


@pytest.fixture
async def model() -> AsyncIterator[Local]:
    file = found(SMOL)
    skip_without_engine()
    model = Local(str(file), window=2_048, fields={"temperature": 0}, calls_once=True)
    yield model
    await model.aclose()


async def test_the_embedded_model_calls_a_tool_and_answers(model: Local) -> None:
    usual = Settings.for_window(2_048, system=SYSTEM, tools=(CLOCK,))
    settings = replace(usual, budget=replace(usual.budget, output=80))

    log = await drive(model, "What time is it?", {"get_time": lambda call: "14:35"}, settings)

    stop = log[-1]
    assert isinstance(stop, RunStopped)
    assert sum(isinstance(event, ToolStarted) for event in log) == 1
    assert (stop.reason, "14:35" in stop.text) == (StopReason.ANSWERED, True)


async def test_it_knows_its_window_and_counts(model: Local) -> None:
    before = await model.count(SHORT)
    got = await model.reply(SHORT, ignore)
    counted = await model.count(SHORT)

    assert got.usage is not None
    assert counted is not None
    assert (before, counted.tokens, model.window) == (None, got.usage.prompt, 2_048)


async def test_an_engine_that_was_killed_is_started_again(model: Local) -> None:
    told: list[Piece] = []
    await model.reply(SHORT, told.append)
    assert model.pid is not None
    os.kill(model.pid, signal.SIGKILL)
    await to_thread.run_sync(os.waitid, os.P_PID, model.pid, os.WEXITED | os.WNOWAIT)

    await model.reply(SHORT, told.append)

    assert sum(isinstance(piece, Waiting) for piece in told) == 2


async def test_a_damaged_file_is_refused_in_the_words_of_the_engine(
    model: Local, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(found(SMOL).read_bytes()[:20_000_000])

    said = await outcome(Local(str(damaged)), SHORT)

    assert said.startswith("FAILED gone: the engine for damaged.gguf died with code 1. It said: ")
    assert "data is not within the file bounds" in said


async def test_others_on_the_same_machine_are_refused(model: Local) -> None:
    async with Engine(found(SMOL), window=512) as running:
        stranger = Chat(f"{running.url}/v1", "smol")
        said = await outcome(stranger, SHORT)
        await stranger.aclose()

    assert said == "FAILED rejected: HTTP 401: Invalid API Key"
