"""What can an embedded model carry? Small tasks with one to four tools, through the real loop.

    python lab/bench/embedded.py MODEL.gguf [--once] [--native] [--times N] [--temperature T]

Every reply is counted as readable or not; of every task: was the right tool called first, with the
right arguments, and is what the tool said in the answer? `--native` offers the tools as the model's
own template has them, and reads what it writes; without, the model is held to a JSON schema.
`--once` asks for the answer as soon as there is a result. Needs the extra `local`.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from holdfast.core.effects import CallModel, Effect, RunTools
from holdfast.core.events import (
    Event,
    FromTheWorld,
    ModelFailed,
    ModelReplied,
    Nudged,
    Outcome,
    RunStopped,
    ToolFinished,
    ToolStarted,
    UserSpoke,
    Why,
)
from holdfast.core.limits import Limits, Settings, StopReason
from holdfast.core.machine import step
from holdfast.core.state import NEW
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.models.base import Model, ModelError
from holdfast.models.local import Local
from holdfast.models.local.engine import NOT_INSTALLED, check_engine
from holdfast.models.spoken import Dialect

SYSTEM = "You are a helpful assistant. Use a tool when you need one, then answer in one sentence."
OUTPUT = 160
"""Tokens of one reply: enough for every call and answer here, and a bound for one that babbles."""
ROUNDS = 5


def tool(name: str, description: str, **parameters: str) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in parameters.items()},
        "required": list(parameters),
    }
    return ToolSpec(
        name=name,
        description=description,
        parameters=json.dumps(schema),
        effect=SideEffect.READ,
        mutates=False,
    )


CLOCK = tool("get_time", "The current time.")
READ = tool("read_file", "Read a text file.", path="string")
LIST = tool("list_folder", "List the files in a folder.", path="string")
ADD = tool("add", "Add two numbers.", a="number", b="number")
WEATHER = tool("get_weather", "The weather in a city today.", city="string")
SEARCH = tool("search", "Search the company's documents.", query="string")


@dataclass(frozen=True)
class Task:
    says: str
    tools: tuple[ToolSpec, ...]
    wants: ToolSpec | None
    """The tool that must be called first; None: the answer needs none."""
    arguments: Mapping[str, object]
    """What must be in them: numbers equal, texts contained."""
    result: str
    answer: str
    """What must be in the answer."""


TASKS = (
    Task("What time is it?", (CLOCK,), CLOCK, {}, "14:35", "14:35"),
    Task("Read notes.txt and tell me what it says.", (READ,), READ,
         {"path": "notes.txt"}, "Milk and bread.", "milk"),
    Task("Which files are in /home/ana?", (LIST,), LIST, {"path": "/home/ana"}, "taxes.pdf", "taxes"),
    Task("What is 417 plus 288?", (ADD,), ADD, {"a": 417, "b": 288}, "705", "705"),
    Task("How is the weather in Oslo?", (WEATHER,), WEATHER, {"city": "Oslo"}, "Snow, -4 C", "snow"),
    Task("Tell me the time, please.", (CLOCK, ADD), CLOCK, {}, "09:12", "09:12"),
    Task("Show me the content of config.ini.", (LIST, READ), READ,
         {"path": "config.ini"}, "port = 8443", "8443"),
    Task("List the folder /var/log.", (READ, LIST), LIST, {"path": "/var/log"}, "boot.log", "boot"),
    Task("Add 12 and 30.", (CLOCK, ADD), ADD, {"a": 12, "b": 30}, "42", "42"),
    Task("How warm is it in Lima?", (WEATHER, SEARCH), WEATHER, {"city": "Lima"}, "Dry, 19 C", "19"),
    Task("Search the documents for the holiday policy.", (SEARCH, READ, CLOCK), SEARCH,
         {"query": "holiday"}, "Everybody has 28 days.", "28"),
    Task("What does the file /etc/hostname contain?", (CLOCK, READ, ADD), READ,
         {"path": "/etc/hostname"}, "lighthouse", "lighthouse"),
    Task("What is the temperature in Cairo now?", (READ, LIST, WEATHER, ADD), WEATHER,
         {"city": "Cairo"}, "Sunny, 33 C", "33"),
    Task("What is in the folder /srv/music?", (CLOCK, READ, LIST, SEARCH), LIST,
         {"path": "/srv/music"}, "bach.flac", "bach"),
    Task("Say hello to Maria.", (CLOCK,), None, {}, "14:35", "maria"),
    Task("What is the capital of France?", (WEATHER, READ), None, {}, "Cloudy", "paris"),
)  # fmt: skip


@dataclass
class Score:
    """Of one task."""

    replies: int = 0
    unreadable: int = 0
    tool: bool = False
    arguments: bool = False
    answer: bool = False
    seconds: float = 0.0
    told: str = ""


async def attempt(model: Model, task: Task) -> Score:
    """One run of the real loop, with the tool's result made up."""
    settings = Settings.for_window(4096, system=SYSTEM, tools=task.tools)
    settings = replace(
        settings,
        budget=replace(settings.budget, output=OUTPUT),
        limits=Limits(rounds=ROUNDS, reasks=1),
    )
    score, begun = Score(tool=task.wants is None, arguments=task.wants is None), time.monotonic()
    called = 0
    state, waiting = NEW, list[Effect]()
    events: list[FromTheWorld] = [UserSpoke(task.says, 0.0, settings)]
    seen: list[Event] = []
    while events or waiting:
        if events:
            done = step(state, events.pop(0))
            state = done.state
            seen += done.events
            waiting += done.effects
            continue
        match waiting.pop(0):
            case CallModel(ask, _, request):
                try:
                    replied = await model.reply(request, lambda piece: None)
                    score.replies += 1
                    events.append(ModelReplied(ask, replied.reply, 0.0, replied.usage))
                except ModelError as error:
                    events.append(ModelFailed(ask, error.failure, error.detail, 0.0))
                    continue
                for wanted in replied.reply.calls:
                    called += 1
                    if called == 1:
                        is_right = task.wants is not None and wanted.name == task.wants.name
                        score.tool = is_right
                        score.arguments = is_right and fit(task.arguments, wanted.arguments)
            case RunTools(calls):
                for call in calls:
                    is_wanted = task.wants is not None and call.name == task.wants.name
                    text = task.result if is_wanted else "Nothing found."
                    events += (
                        ToolStarted(call.id, 0.0),
                        ToolFinished(call.id, Outcome.DONE, text, 0.0),
                    )
    malformed = (Why.MALFORMED, Why.CUT_SHORT)
    score.unreadable = sum(isinstance(e, Nudged) and e.why in malformed for e in seen)
    stop = next(event for event in seen if isinstance(event, RunStopped))
    score.told = f"{stop.reason.value}: {stop.text}"
    score.answer = stop.reason is StopReason.ANSWERED and task.answer in stop.text.lower()
    score.seconds = time.monotonic() - begun
    return score


def fit(wanted: Mapping[str, object], arguments: str) -> bool:
    try:
        given = json.loads(arguments)
    except ValueError:
        return False
    return all(
        str(value).lower() in str(given.get(key, "")).lower()
        if isinstance(value, str)
        else given.get(key) == value
        for key, value in wanted.items()
    )


async def main(model: Local, times: int) -> None:
    scores: list[Score] = []
    for task in TASKS * times:
        score = await attempt(model, task)
        scores.append(score)
        marks = (score.tool, score.arguments, score.answer)
        print(
            f"  {''.join('x' if mark else '-' for mark in marks)} {score.replies} replies "
            f"{score.seconds:5.1f} s  {task.says} -> {' '.join(score.told.split())[:70]}",
            flush=True,
        )
    await model.aclose()
    every, replies = len(scores), sum(score.replies for score in scores)
    print(
        f"{every} tasks, {replies} replies. "
        f"Readable replies: {1 - sum(s.unreadable for s in scores) / replies:.0%}. "
        f"Right tool: {sum(s.tool for s in scores)}. "
        f"Right arguments: {sum(s.arguments for s in scores)}. "
        f"Right answer: {sum(s.answer for s in scores)}. "
        f"{sum(s.seconds for s in scores) / every:.1f} s a task."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What can an embedded model carry?")
    parser.add_argument("gguf", nargs="?", type=Path)
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--temperature", type=float)
    given = parser.parse_args()
    if given.gguf is None or not given.gguf.is_file():
        sys.exit(print("Left out: give the path of a GGUF file."))
    try:
        check_engine()
    except ModelError:
        sys.exit(print(f"Left out: {NOT_INSTALLED}."))
    fields = {} if given.temperature is None else {"temperature": given.temperature}
    speaks = None if given.native else Dialect.JSON
    bare = Local(str(given.gguf), window=4096, fields=fields, speaks=speaks, calls_once=given.once)
    anyio.run(main, bare, given.times)
