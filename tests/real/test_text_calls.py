"""Calls that come as text from real models: as they like to write them, and held to a schema."""

import json
from contextlib import aclosing
from dataclasses import replace

import pytest

from holdfast.core.events import ModelReplied, RunStopped
from holdfast.core.limits import Limits, Settings, StopReason
from holdfast.core.messages import UserMessage
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.models.chat import Chat
from holdfast.models.discovery import Kind, look
from holdfast.models.spoken import Dialect
from tests.driving import drive
from tests.models.asking import ignore, request
from tests.real.conftest import KEY, QWEN, SMOL, WINDOW, StartsEngine

pytestmark = pytest.mark.timeout(300)

WEATHER = ToolSpec(
    name="get_weather",
    description="The weather in a city today.",
    parameters='{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
    effect=SideEffect.READ,
    mutates=False,
)
SYSTEM = "You are a helpful assistant. Use a tool when you need one, then answer in one sentence."
TASK = "How is the weather in Oslo?"
OUTPUT = 60
"""Tokens of a reply: a slow machine writes ten a second."""
ASKED = request(UserMessage(TASK), system=SYSTEM, tools=(WEATHER,), output=OUTPUT)


def client(url: str, speaks: Dialect | None = None) -> Chat:
    return Chat(f"{url}/v1", "any", key=KEY, fields={"temperature": 0}, speaks=speaks)


async def test_a_call_that_the_server_leaves_in_the_text_is_read(started: StartsEngine) -> None:
    """The template shows calls in a way the model does not follow: it fences JSON instead."""
    async with aclosing(client(started(QWEN))) as model:
        got = await model.reply(ASKED, ignore)

    assert [(call.name, json.loads(call.arguments)) for call in got.reply.calls] == [
        ("get_weather", {"city": "Oslo"})
    ]
    assert "a call written as text" in got.notes


async def test_a_run_held_to_a_schema_comes_to_its_answer(started: StartsEngine) -> None:
    usual = Settings.for_window(WINDOW, system=SYSTEM, tools=(WEATHER,))
    settings = replace(
        usual, budget=replace(usual.budget, output=OUTPUT), limits=Limits(rounds=4, reasks=1)
    )
    async with aclosing(client(started(QWEN), Dialect.JSON)) as model:
        log = await drive(model, TASK, {"get_weather": lambda call: "Snow, -4 C"}, settings)

    called = [
        (call.name, json.loads(call.arguments))
        for event in log
        if isinstance(event, ModelReplied)
        for call in event.reply.calls
    ]
    stop = log[-1]
    assert isinstance(stop, RunStopped)
    assert called == [("get_weather", {"city": "Oslo"})]
    assert (stop.reason, "snow" in stop.text.lower()) == (StopReason.ANSWERED, True)


async def test_even_the_smallest_model_is_held_to_the_schema(started: StartsEngine) -> None:
    async with aclosing(client(started(SMOL), Dialect.JSON)) as model:
        got = await model.reply(ASKED, ignore)

    assert got.reply.problem == ""
    assert [call.name for call in got.reply.calls] == ["get_weather"]


NESTED = {
    "type": "object",
    "properties": {"place": {"$ref": "#/$defs/Place"}, "unit": {"enum": ["C", "F"]}},
    "required": ["place", "unit"],
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"city": {"type": "string", "pattern": r"^\w+$", "maxLength": 4000}},
            "required": ["city"],
        }
    },
}
"""What type annotations become: definitions, and keywords that one of the engines refuses."""


@pytest.mark.xfail(strict=True, reason="definitions are not moved to the root of the schema")
async def test_every_schema_of_a_tool_is_taken(started: StartsEngine) -> None:
    tool = replace(WEATHER, parameters=json.dumps(NESTED))
    async with aclosing(client(started(SMOL), Dialect.JSON)) as model:
        got = await model.reply(replace(ASKED, tools=(tool,)), ignore)

    assert [call.name for call in got.reply.calls] == ["get_weather"]


@pytest.mark.parametrize(("weights", "has_tools"), [(QWEN, True), (SMOL, False)])
async def test_the_server_says_whether_the_template_has_a_place_for_tools(
    weights: str, has_tools: bool, started: StartsEngine
) -> None:
    seen = await look(started(weights), within=30, key=KEY)

    assert seen.server is not None
    assert seen.model is not None
    assert (seen.server.kind, seen.model.window, seen.model.tools) == (
        Kind.LLAMA_CPP,
        WINDOW,
        has_tools,
    )
