"""Whole runs over real sockets: the loop, a client, and a server that keeps its window."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.core.events import About, ModelFailed, RunStopped, Warned
from holdfast.core.limits import Settings, StopReason
from holdfast.core.messages import ToolCall
from holdfast.models.anthropic import Anthropic
from holdfast.models.base import Model
from holdfast.models.chat import Chat
from holdfast.models.fallback import Chain, Retries
from holdfast.models.ollama import Ollama
from holdfast.models.spoken import Dialect
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import Says, calls, says
from holdfast.testing.server import Kind, ModelServer, Received, faults
from tests.driving import Tools, drive
from tests.models.asking import READ

WINDOW = 4_096
FILES = 24
QUICK = Retries(first_wait=0.001, longest_wait=0.002)
SETTINGS = replace(Settings.for_window(WINDOW, system="You are an agent.", tools=(READ,)))


def contents(call: ToolCall) -> str:
    path = json.loads(call.arguments)["path"]
    lines = (f"{path}: line {n} costs {n * 37 % 1000}.{n % 100:02d} EUR" for n in range(60))
    return "\n".join(lines)


TOOLS: Tools = {"read": contents}


class Reader:
    """A model that reads one file after the other, and then answers."""

    def __init__(self) -> None:
        self.read = 0

    def __call__(self, received: Received) -> Says:
        self.read += 1
        if self.read > FILES:
            return says("I have read them all.")
        return calls("read", path=f"file {self.read}.txt")


def chat(server: ModelServer) -> Model:
    return Chat(f"{server.url}/v1", "test-model", window=WINDOW)


def ollama(server: ModelServer) -> Model:
    return Ollama(server.url, "test-model", window=WINDOW)


def anthropic(server: ModelServer) -> Model:
    return Anthropic(server.url, "test-model", window=WINDOW)


@pytest.mark.parametrize(
    ("kind", "client"),
    [
        *((kind, chat) for kind in Kind if kind not in (Kind.OLLAMA, Kind.ANTHROPIC)),
        (Kind.OLLAMA, ollama),
        (Kind.ANTHROPIC, anthropic),
    ],
)
async def test_a_long_run_fits_into_the_window_of_every_server(
    kind: Kind, client: Callable[[ModelServer], Model], model_server: StartsServers
) -> None:
    server = model_server(then=Reader(), kind=kind, window=WINDOW)
    model = Chain([client(server)], QUICK)

    log = await drive(model, "Read all files.", TOOLS, SETTINGS)
    await model.aclose()

    assert log[-1] == RunStopped(StopReason.ANSWERED, "I have read them all.")
    assert not [event for event in log if isinstance(event, ModelFailed)]
    assert len(server.chats) == FILES + 1
    room = WINDOW - SETTINGS.budget.output
    assert [each.tokens for each in server.chats if each.tokens > room] == []


async def test_a_window_that_is_smaller_than_thought_is_learned_from_the_refusal(
    model_server: StartsServers,
) -> None:
    server = model_server(then=Reader(), window=WINDOW)
    large = Settings.for_window(4 * WINDOW, system="You are an agent.", tools=(READ,))
    small = replace(large, budget=replace(large.budget, output=400))
    server.expect_complaints()
    model = Chain([chat(server)], QUICK)

    log = await drive(model, "Read all files.", TOOLS, small)
    await model.aclose()

    refusals = [event for event in log if isinstance(event, ModelFailed)]
    assert log[-1] == RunStopped(StopReason.ANSWERED, "I have read them all.")
    assert [event.window for event in refusals] == [WINDOW]


async def test_a_prompt_that_is_cut_in_silence_is_noticed(model_server: StartsServers) -> None:
    server = model_server(then=Reader(), kind=Kind.OLLAMA, window=1_024)
    server.expect_complaints()
    model = Chain([chat(server)], QUICK)

    log = await drive(model, "Read all files.", TOOLS, SETTINGS)
    await model.aclose()

    warned = [event for event in log if isinstance(event, Warned)]
    assert About.COUNT in [event.about for event in warned]


@pytest.mark.parametrize("dialect", Dialect)
async def test_a_model_without_tools_of_its_own_works_like_any_other(
    dialect: Dialect, model_server: StartsServers
) -> None:
    begin, answer = dialect.value
    server = model_server(
        says(f'{begin}"read", "input": {{"path": "a.txt"}}}}'),
        says(f'{answer}"There are **60** lines in `a.txt`."}}'),
    )
    model = Chat(f"{server.url}/v1", "test-model", speaks=dialect)

    log = await drive(model, "How long is a.txt?", TOOLS, SETTINGS)
    await model.aclose()

    assert log[-1] == RunStopped(StopReason.ANSWERED, "There are **60** lines in `a.txt`.")


async def test_nothing_of_a_broken_stream_or_a_cut_call_is_ever_run(
    model_server: StartsServers,
) -> None:
    ran: list[str] = []

    def read(call: ToolCall) -> str:
        ran.append(call.arguments)
        return "text"

    call = calls("read", path="wrong.txt")
    server = model_server(
        faults.dropped_stream(call, after=2),
        faults.half_event(call),
        faults.call_cut_by_length(call),
        faults.error_in_stream(call),
        calls("read", path="right.txt"),
        says("Done."),
    )
    model = Chain([chat(server)], QUICK)

    log = await drive(model, "Read right.txt.", {"read": read}, SETTINGS)
    await model.aclose()

    assert log[-1] == RunStopped(StopReason.ANSWERED, "Done.")
    assert ran == ['{"path":"right.txt"}']


async def test_a_run_whose_model_is_gone_ends_with_a_text_that_claims_nothing(
    model_server: StartsServers,
) -> None:
    server = model_server(calls("read", path="a.txt"), then=faults.close_before_answering())
    model = Chain([chat(server)], QUICK)

    log = await drive(model, "Read a.txt.", TOOLS, SETTINGS)
    await model.aclose()

    stopped = log[-1]
    assert isinstance(stopped, RunStopped)
    assert stopped.reason is StopReason.MODEL_FAILED
    assert "could not be reached" in stopped.text
    assert "read" in stopped.text
