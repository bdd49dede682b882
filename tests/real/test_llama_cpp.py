"""The loop and the clients against real llama.cpp servers and real small models."""

import json
from dataclasses import replace

import anyio
import pytest

from holdfast.core.events import Failure, ModelFailed, ModelReplied, RunStopped, ToolFinished
from holdfast.core.limits import Settings, StopReason
from holdfast.core.messages import (
    AssistantMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.models.base import Count, ModelError, Piece, Said
from holdfast.models.catalog import WindowFrom, rules
from holdfast.models.chat import Chat
from holdfast.models.fallback import Chain
from holdfast.models.names import opened
from holdfast.models.wire import Wire
from tests.driving import drive
from tests.models.asking import READ, ignore, request
from tests.real.conftest import KEY, QWEN, SMOL, StartsEngine

pytestmark = pytest.mark.timeout(600)

EXACT = {"temperature": 0, "seed": 1}
CONVERSATION = (
    UserMessage("What is in a.txt?"),
    AssistantMessage("", (ToolCall("c00000001", "read", '{"path": "a.txt"}'),)),
    ToolMessage("c00000001", "read", 'It says "hi" \n\t\\ é 你好 123.45'),
    UserMessage("And what does that mean?"),
)


def client(url: str, **more: object) -> Chat:
    return Chat(f"{url}/v1", "any", key=KEY, fields={**EXACT, **more})


async def test_a_conversation_with_a_tool_completes(started: StartsEngine) -> None:
    url = started(QWEN)
    env = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY}
    found = await opened(f"{url}/v1#qwen2.5-coder-1.5b", env, rules(), fields=EXACT)
    assert (found.known.window, found.known.window_from) == (4096, WindowFrom.SERVER)
    settings = Settings.for_window(4096, system="You answer briefly.", tools=(READ,))
    asked: list[str] = []

    def read(call: ToolCall) -> str:
        asked.append(json.loads(call.arguments)["path"])
        return "The meeting was moved to Thursday at 14:30."

    model = Chain([found.model])
    task = "Read notes.txt and tell me at what time the meeting is."
    log = await drive(model, task, {"read": read}, settings)
    await model.aclose()

    stopped = log[-1]
    assert isinstance(stopped, RunStopped)
    assert stopped.reason is StopReason.ANSWERED
    assert asked[0] == "notes.txt"
    assert "14:30" in stopped.text
    assert [event for event in log if isinstance(event, ToolFinished)]
    # What the catalogue knows of the model: held to a schema, it writes its calls as text.
    replies = [event for event in log if isinstance(event, ModelReplied)]
    assert "a call written as text" in replies[0].notes


@pytest.mark.parametrize("weights", [QWEN, SMOL])
async def test_counting_is_exact(weights: str, started: StartsEngine) -> None:
    chat = client(started(weights), max_tokens=1)
    asked = request(*CONVERSATION)

    counted = await chat.count(asked)
    replied = await chat.reply(asked, ignore)
    await chat.aclose()

    assert replied.usage is not None
    assert counted == Count(replied.usage.prompt, "the server")


async def test_a_request_that_is_too_long_is_refused_with_its_size(started: StartsEngine) -> None:
    chat = client(started(SMOL, 512))
    long = request(UserMessage("word " * 2_000), tools=())

    counted = await chat.count(long)
    with pytest.raises(ModelError) as refused:
        await chat.reply(long, ignore)
    await chat.aclose()

    assert counted is not None
    error = refused.value
    assert (error.failure, error.window, error.tokens) == (Failure.OVERFLOW, 512, counted.tokens)


async def test_an_overflow_is_survived(started: StartsEngine) -> None:
    url = started(SMOL, 1024)
    wrong = Settings.for_window(8_192, system="You are kind.")
    settings = replace(wrong, budget=replace(wrong.budget, output=40))
    task = f"{'The weather is fine today. ' * 400}\nSay hello."
    model = Chain([client(url)])

    log = await drive(model, task, {}, settings)
    await model.aclose()

    refused = [event.window for event in log if isinstance(event, ModelFailed)]
    assert refused == [1024]
    assert isinstance(log[-1], RunStopped)
    assert log[-1].reason in (StopReason.ANSWERED, StopReason.CONCLUDED)


async def test_a_window_that_fills_up_in_the_middle_of_a_reply_is_an_overflow(
    started: StartsEngine,
) -> None:
    chat = client(started(SMOL, 512), ignore_eos=True)
    chat.window = 512

    with pytest.raises(ModelError, match="was full before") as failed:
        await chat.reply(request(tools=(), output=5_000), ignore)
    await chat.aclose()

    assert failed.value.failure is Failure.OVERFLOW


async def test_cancelling_frees_the_slot_of_the_server(started: StartsEngine) -> None:
    url = started(SMOL)
    chat = client(url, ignore_eos=True)
    wire = Wire(url, {"Authorization": f"Bearer {KEY}"})

    async def is_at_work() -> bool:
        slots = await wire.get_json("/slots")
        assert isinstance(slots, list)
        return bool(slots[0]["is_processing"])

    with anyio.CancelScope() as scope:

        def cancel_at_the_first_word(piece: Piece) -> None:
            if isinstance(piece, Said):
                scope.cancel()

        await chat.reply(request(tools=(), output=3_000), cancel_at_the_first_word)
    assert scope.cancelled_caught
    with anyio.fail_after(10):  # three thousand tokens would take a minute
        while await is_at_work():
            pass
    again = await chat.reply(request(tools=(), output=5), ignore)
    await chat.aclose()
    await wire.aclose()

    assert again.usage is not None
    assert again.usage.completion == 5
