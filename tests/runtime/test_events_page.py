"""The page about events shows every type of envelope, each as it is really sent."""

import re
from pathlib import Path

from holdfast.core.events import (
    USER,
    About,
    CancelAsked,
    Charged,
    Decided,
    EndDecided,
    Event,
    Evicted,
    Fading,
    Failure,
    FilesRestored,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    Nudged,
    Outcome,
    Pinned,
    Purpose,
    Reopened,
    Reply,
    RunStopped,
    Steered,
    Summarised,
    ToolFinished,
    ToolsChanged,
    ToolsFound,
    ToolStarted,
    UserSpoke,
    Verdict,
    Warned,
    Why,
)
from holdfast.core.limits import Settings, StopReason, Usage
from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.models.base import Reading, Said, Waiting
from holdfast.runtime.bus import Answered, Passing
from holdfast.runtime.envelope import Envelope, ndjson
from holdfast.runtime.feed import Feed
from holdfast.testing.script import wants
from holdfast.tools.base import Form, Progress
from tests.runtime.test_feed import a_question

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/events.md"
TYPE = r"(?:thread|turn|item|step|context|compaction|approval|input|question|guard|tools|files|usage|task|server)\.[a-z]+"
AT = 1_763_230_483.12

LOOK = ToolSpec(name="ls", description="List.", effect=SideEffect.READ, mutates=False)
LOG: list[Event | Passing] = [
    UserSpoke("Tidy up", AT, Settings(model="ollama/qwen3:8b", tools=(ToolSpec(name="rm"), LOOK))),
    ModelAsked(1, Purpose.WORK, 1_830),
    Passing(Waiting("the model is loading", 2.0, "qwen3:8b")),
    Passing(Reading(512, 1_830)),
    Passing(Said("I will remove ")),
    ModelReplied(
        1,
        Reply(text="I will remove a.", calls=(wants("rm", path="a"),)),
        AT + 2,
        Usage(prompt=1_790, completion=24, cached=512, cost=90),
    ),
    Passing(a_question(), "c00000001"),
    Passing(Answered("c00000001"), "c00000001"),
    Decided("c00000001", Verdict.ALLOWED, AT + 5, USER, grants="rm(*)"),
    ToolStarted("c00000001", AT + 5),
    Passing(Progress("1 of 2 files", 1, 2), "c00000001"),
    Passing(Form("Which printer?", '{"type":"object"}'), "c00000001"),
    Charged("c00000001", Usage(prompt=300, completion=20, cost=12), AT + 6),
    ToolFinished("c00000001", Outcome.DONE, "Removed a.", AT + 7),
    Pinned("plan", "1. remove a", AT + 7),
    ToolsChanged((LOOK,), AT + 7),
    ToolsFound(("rm",), AT + 7),
    FilesRestored(("a",), AT + 8),
    UserSpoke("And b", AT + 8),
    Steered(),
    ModelAsked(2, Purpose.SUMMARISE, 30_100),
    ModelReplied(2, Reply(text="Removed a."), AT + 9),
    Summarised("Removed a."),
    Evicted((Fading(2),)),
    Warned(About.WINDOW, "The window is filling up: 26300 of 32768 tokens are in use."),
    Nudged(Why.SILENT, "You said nothing."),
    ModelAsked(3, Purpose.WORK, 9_800),
    ModelFailed(3, Failure.GONE, "connection reset", AT + 12),
    Reopened(AT + 3_600),
    EndDecided(StopReason.NO_PROGRESS, "The same call came back five times."),
    RunStopped(StopReason.NO_PROGRESS, "Removed a; b was not processed."),
    UserSpoke("Once more", AT + 3_700),
    CancelAsked(AT + 3_701),
    RunStopped(StopReason.MODEL_FAILED, "The server could not be reached."),
]


def examples() -> dict[str, str]:
    """The first envelope of each type, as a line of JSON."""
    feed, seq, told = Feed("01JCXR", kinds={"rm": "delete"}), 0, list[Envelope]()
    for each in LOG:
        if isinstance(each, Passing):
            told += feed.passing(each, AT + 1)
        else:
            seq += 1
            told += feed.stored(seq, each)
    told += [
        feed.server("ollama/qwen3:8b", AT, up=True, loading=True),
        feed.task(1, "started", AT, text="Tidy up", session="01JCXS"),
        feed.task(1, "updated", AT, text="3 calls so far", session="01JCXS"),
        feed.task(1, "completed", AT, text="Removed a.", session="01JCXS"),
        feed.error("The journal cannot be written: the disk is full.", AT),
    ]
    first: dict[str, str] = {}
    for envelope in told:
        first.setdefault(envelope.type, ndjson(envelope).decode().strip())
    return first


def test_every_example_of_the_page_is_what_is_sent() -> None:
    shown = re.findall(r"^### `([a-z.]+)`\n.*?```json\n(.*?)\n```", PAGE.read_text(), re.M | re.S)

    assert dict(shown) == examples()


def test_the_page_leaves_no_type_out() -> None:
    sources = [ROOT / "src/holdfast/runtime" / name for name in ("feed.py", "told.py")]
    sent = {kind for path in sources for kind in re.findall(f'"({TYPE})"', path.read_text())}

    assert sent | {"warning", "error", "task.started", "task.updated", "task.completed"} == set(
        examples()
    )
