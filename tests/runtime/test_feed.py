"""Watchers are told everything that happens, once, in order, and the same again from the log."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from holdfast.core.events import (
    USER,
    Attached,
    Charged,
    Decided,
    Event,
    Failure,
    FileKept,
    FilesRestored,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    Outcome,
    Reply,
    ToolFinished,
    ToolStarted,
    UserSpoke,
    Verdict,
)
from holdfast.core.limits import Limits, Settings, StopReason, Usage
from holdfast.core.machine import replay, step
from holdfast.core.messages import ToolCall
from holdfast.core.state import NEW
from holdfast.core.tools import ToolSpec
from holdfast.models.base import Piece, Reading, Said, TakenBack, Thought, Waiting
from holdfast.runtime.bus import Answered, Passing
from holdfast.runtime.envelope import STOP_REASONS, Envelope, ndjson, result_object
from holdfast.runtime.feed import Feed, replayed
from holdfast.testing.script import Fails, Played, calls, play, says, several, wants
from holdfast.testing.world import World
from holdfast.tools.base import Access, Arguments, Context, Form, Progress, Tool, Touch
from holdfast.tools.door import Question
from tests.core.sessions import Trace, sessions


def lines(envelopes: list[Envelope]) -> list[str]:
    """One line an envelope: its number, run and type, and what is in it."""
    return [
        f"{each.seq} {each.turn} {each.type} {json.dumps(dict(each.body), ensure_ascii=False)}"
        for each in envelopes
        if each.type != "context.updated"
    ]


def a_run() -> Played:
    script = [
        several(wants("clock", zone="UTC"), wants("nothing"), text="Let me look."),
        says("It is noon.", usage=Usage(prompt=9_100, completion=7, cached=512, cost=1_500)),
    ]
    return play("What time is it?", script, {"clock": "12:00 " * 2_000})


def test_a_whole_run_reads_like_this() -> None:
    told = lines(replayed("s1", a_run().events))

    assert [line if len(line) < 240 else f"{line[:170]} … {line[-60:]}" for line in told] == (
        snapshot(
            [
                "1 t1 thread.started {}",
                '1 t1 turn.started {"input": "What time is it?", "model": "", "tools": ["clock"], "shelved": [], "window": 32768, "limits": {"steps": 300, "calls": 1000, "tokens": 20000000, "cost_usd": 10.0, "seconds": 14400.0}}',
                '2 t1 step.started {"step": 1, "purpose": "work", "expected_tokens": 211}',
                '3 t1 item.completed {"item": {"id": "m1", "type": "agent_message", "status": "completed", "text": "Let me look."}}',
                '3 t1 step.completed {"step": 1, "finish": "stop", "model": "", "fallback": false, "usage": null, "notes": [], "problem": "", "not_taken": []}',
                '3 t1 item.started {"item": {"id": "c00000001", "type": "tool_call", "name": "clock", "kind": "read", "arguments": {"zone": "UTC"}, "status": "pending"}}',
                '3 t1 item.started {"item": {"id": "c00000002", "type": "tool_call", "name": "nothing", "kind": "other", "arguments": {}, "status": "pending"}}',
                '4 t1 item.completed {"item": {"id": "c00000002", "type": "tool_call", "name": "nothing", "kind": "other", "arguments": {}, "status": "failed", "outcome": "not run", "resu … There is no tool named \'nothing\'. Some that exist: clock."}}',
                '6 t1 item.updated {"item": {"id": "c00000001", "type": "tool_call", "status": "in_progress"}}',
                '7 t1 item.completed {"item": {"id": "c00000001", "type": "tool_call", "name": "clock", "kind": "read", "arguments": {"zone": "UTC"}, "status": "completed", "outcome": "do … 2:00 \\n[... truncated: showing first 6000 of 12000 chars]"}}',
                '8 t1 step.started {"step": 2, "purpose": "work", "expected_tokens": 9435}',
                '9 t1 item.completed {"item": {"id": "m2", "type": "agent_message", "status": "completed", "text": "It is noon."}}',
                '9 t1 step.completed {"step": 2, "finish": "stop", "model": "", "fallback": false, "usage": {"input_tokens": 9100, "output_tokens": 7, "cache_read_input_tokens": 512, "cost_usd": 0.0015}, "notes": [], "problem": "", "not_taken": []}',
                '10 t1 turn.completed {"stop_reason": "end_turn", "reason": "answered", "result": "It is noon.", "usage": {"input_tokens": 9311, "output_tokens": 15, "cache_read_input_tok … ailed": 0, "unknown": 0, "not_run": 1}, "duration_ms": 4000}',
            ]
        )
    )


def test_an_envelope_is_one_line_of_json_with_the_fields_every_envelope_has() -> None:
    first = replayed("s1", a_run().events)[1]

    assert ndjson(first).decode() == snapshot(
        '{"v":1,"seq":1,"ts":"1970-01-01T00:00:01.000Z","session":"s1","turn":"t1","type":"turn.started","input":"What time is it?","model":"","tools":["clock"],"shelved":[],"window":32768,"limits":{"steps":300,"calls":1000,"tokens":20000000,"cost_usd":10.0,"seconds":14400.0}}\n'
    )


def test_the_whole_result_is_told_and_beside_it_what_the_model_is_shown() -> None:
    played = a_run()

    told = [each for each in replayed("s1", played.events) if each.type == "item.completed"]

    clock = next(each.body["item"] for each in told if "'clock'" in str(each.body))
    assert isinstance(clock, dict)
    assert clock["result"] == "12:00 " * 2_000
    sent = [message.text for message in played.requests[-1].messages]
    assert clock["shown"] in sent
    assert "of 12000 chars" in clock["shown"]


def test_how_full_the_window_is_comes_from_the_estimate_and_then_from_the_server() -> None:
    told = [each.body for each in replayed("s1", a_run().events) if each.type == "context.updated"]

    assert told[-2:] == snapshot(
        [
            {
                "used": 9435,
                "size": 32768,
                "source": "estimate",
                "slices": {
                    "system": 9,
                    "tools": 3,
                    "pinned": 0,
                    "history": 41,
                    "results": 5110,
                    "reserve": 2768,
                },
            },
            {
                "used": 9100,
                "size": 32768,
                "source": "server",
                "slices": {
                    "system": 9,
                    "tools": 3,
                    "pinned": 0,
                    "history": 41,
                    "results": 8863,
                    "reserve": 2768,
                },
            },
        ]
    )


def test_pieces_begin_an_item_that_the_stored_reply_completes() -> None:
    feed, at = begun()
    pieces: list[Piece] = [
        Waiting("the model is loading", 2.0, "a"),
        Reading(512, 2_048),
        Thought("hm", "thinking"),
        Said("It w"),
        TakenBack("it broke off"),
        Said("It is "),
        Said("noon."),
    ]

    told = [each for piece in pieces for each in feed.passing(Passing(piece), 3.0)]
    told += feed.stored(at + 1, ModelReplied(1, Reply(text="It is noon."), 4.0))

    assert lines(told) == snapshot(
        [
            '2 t1 step.retry {"step": 1, "attempt": 1, "delay_ms": 2000, "reason": "the model is loading", "model": "a"}',
            '2 t1 step.reading {"step": 1, "done": 512, "of": 2048}',
            '2 t1 item.started {"item": {"id": "r1", "type": "reasoning", "status": "in_progress", "text": "", "field": "thinking"}}',
            '2 t1 item.delta {"id": "r1", "text": "hm"}',
            '2 t1 item.started {"item": {"id": "m1", "type": "agent_message", "status": "in_progress", "text": ""}}',
            '2 t1 item.delta {"id": "m1", "text": "It w"}',
            '2 t1 item.updated {"item": {"id": "r1", "type": "reasoning", "status": "in_progress", "text": "", "why": "it broke off"}}',
            '2 t1 item.updated {"item": {"id": "m1", "type": "agent_message", "status": "in_progress", "text": "", "why": "it broke off"}}',
            '2 t1 item.delta {"id": "m1", "text": "It is "}',
            '2 t1 item.delta {"id": "m1", "text": "noon."}',
            '3 t1 item.completed {"item": {"id": "r1", "type": "reasoning", "status": "void", "text": ""}}',
            '3 t1 item.completed {"item": {"id": "m1", "type": "agent_message", "status": "completed", "text": "It is noon."}}',
            '3 t1 step.completed {"step": 1, "finish": "stop", "model": "a", "fallback": false, "usage": null, "notes": [], "problem": "", "not_taken": []}',
        ]
    )


def test_what_was_told_of_a_reply_that_came_to_nothing_is_void() -> None:
    feed, at = begun()
    told = feed.passing(Passing(Said("It w")), 3.0)
    told += feed.stored(at + 1, ModelFailed(1, Failure.GONE, "reset", 4.0))
    told += feed.passing(Passing(Said("too late")), 5.0)

    assert lines(told) == snapshot(
        [
            '2 t1 item.started {"item": {"id": "m1", "type": "agent_message", "status": "in_progress", "text": ""}}',
            '2 t1 item.delta {"id": "m1", "text": "It w"}',
            '3 t1 item.completed {"item": {"id": "m1", "type": "agent_message", "status": "void", "text": ""}}',
            '3 t1 step.failed {"step": 1, "failure": "gone", "detail": "reset", "window": null, "tokens": null}',
        ]
    )


def test_questions_progress_and_what_is_in_no_log() -> None:
    feed = Feed("s1", kinds={"rm": "execute"})
    for seq, event in enumerate(open_call(), 1):
        feed.stored(seq, event)
    passing = [
        Passing(a_question(), "c00000001"),
        Passing(Form("Which one?"), "c00000001"),
        Passing(Answered("c00000001"), "c00000001"),
        Passing(Progress("half", 1, 2), "c00000001"),
        Passing(Progress("of nothing"), "c00000009"),
    ]

    told = [
        *(each for one in passing for each in feed.passing(one, 5.0)),
        feed.server("a", 6.0, up=True, loading=True),
        feed.task(3, "completed", 6.0, text="done", session="s2"),
        feed.warning("watcher", "You fell behind.", 6.0),
        feed.error("The disk is full.", 6.0),
    ]

    assert lines(told) == snapshot(
        [
            '4 t1 approval.requested {"id": "c00000001", "name": "rm", "arguments": {"path": "a"}, "access": "execute", "subjects": ["rm -r build"], "danger": "it deletes", "why": "no rule allows it", "preview": "build/", "rule": "rm(*)", "options": ["allow_once", "allow_session", "allow_always", "reject_once"]}',
            '4 t1 input.requested {"id": "c00000001", "message": "Which one?", "schema": "{}", "url": ""}',
            '4 t1 question.closed {"id": "c00000001"}',
            '4 t1 item.updated {"item": {"id": "c00000001", "type": "tool_call", "status": "in_progress", "progress": {"text": "half", "done": 1, "of": 2}}}',
            '4 t1 server.status {"model": "a", "up": true, "loading": true}',
            '4 t1 task.completed {"id": "k3", "text": "done", "runs_in": "s2"}',
            '4 t1 warning {"about": "watcher", "detail": "You fell behind."}',
            '4 t1 error {"detail": "The disk is full."}',
        ]
    )
    assert not any(each.durable for each in told)
    assert json.loads(ndjson(told[0]))["ephemeral"] is True


def test_decisions_files_and_costs_are_told() -> None:
    more: list[Event] = [
        Decided("c00000001", Verdict.ALLOWED, 5.0, USER, '{"path": "b"}', "rm(*)"),
        ToolStarted("c00000001", 6.0),
        FileKept("c00000001", "b", "", 6.0),
        Charged("c00000001", Usage(prompt=10, completion=2, cost=30), 6.0),
        ToolFinished("c00000001", Outcome.DONE, "gone", 7.0, (Attached("image/png", 9, "ab"),)),
        ToolFinished("c00000001", Outcome.DONE, "gone again", 8.0),
        FilesRestored(("b",), 9.0),
    ]
    events = [*open_call(), *more]

    told = lines(replayed("s1", events))

    assert told[5:] == snapshot(
        [
            '5 t1 approval.resolved {"id": "c00000001", "answer": "allow_session", "by": "user", "by_user": true, "words": "", "grants": "rm(*)"}',
            '5 t1 item.updated {"item": {"id": "c00000001", "type": "tool_call", "name": "rm", "kind": "other", "arguments": {"path": "b"}, "edited": true}}',
            '6 t1 item.updated {"item": {"id": "c00000001", "type": "tool_call", "status": "in_progress"}}',
            '7 t1 item.completed {"item": {"call_id": "c00000001", "path": "b", "blob": "", "mode": 0, "id": "f7", "type": "file_change", "status": "completed", "existed": false}}',
            '8 t1 usage.charged {"call_id": "c00000001", "usage": {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 0, "cost_usd": 3e-05}}',
            '9 t1 item.completed {"item": {"id": "c00000001", "type": "tool_call", "name": "rm", "kind": "other", "arguments": {"path": "b"}, "status": "completed", "outcome": "done", "result": "gone", "attached": [{"media": "image/png", "size": 9, "blob": "ab"}], "shown": "gone"}}',
            '10 t1 warning {"about": "late", "detail": "The call c00000001 was answered again.", "text": "gone again"}',
            '11 t1 files.restored {"paths": ["b"]}',
        ]
    )


def test_a_crash_a_cancel_and_a_late_result_are_told() -> None:
    played = play("Delete it", [calls("rm", path="a")], settings=one_tool())
    events = [*played.events[:4], ToolStarted("c00000001", 5.0)]
    crashed = Played([], {}, replay(events), list(events))
    crashed.killed()
    crashed.cancel()
    late = ToolFinished("c00000001", Outcome.DONE, "deleted after all", 9.0)
    crashed.only(late)

    assert lines(replayed("s1", crashed.events))[4:] == snapshot(
        [
            '3 t1 item.started {"item": {"id": "c00000001", "type": "tool_call", "name": "rm", "kind": "other", "arguments": {"path": "a"}, "status": "pending"}}',
            '5 t1 item.updated {"item": {"id": "c00000001", "type": "tool_call", "status": "in_progress"}}',
            "6 t1 thread.resumed {}",
            '7 t1 item.completed {"item": {"id": "c00000001", "type": "tool_call", "name": "rm", "kind": "other", "arguments": {"path": "a"}, "status": "failed", "outcome": "unknown", "result": "The process stopped while this tool was running. It may or may not have taken effect. Check before you call it again.", "attached": [], "shown": "The process stopped while this tool was running. It may or may not have taken effect. Check before you call it again."}}',
            '8 t1 step.started {"step": 2, "purpose": "work", "expected_tokens": 254}',
            "9 t1 turn.cancelling {}",
            '10 t1 turn.completed {"stop_reason": "cancelled", "reason": "cancelled", "result": "The run stopped (cancelled) without an answer from the model.\\nWhat was really done: 0 of 1 tool calls succeeded, 0 failed, 1 ended nobody knows how, 0 were not run.\\nOutcome unknown, check before you repeat it:\\n- rm(path=a): The process stopped while this tool was running. It may or may not have taken effect. Check before you call it again.\\nNo other tool was called in this run.", "usage": {"input_tokens": 204, "output_tokens": 4, "cache_read_input_tokens": 0}, "cost_usd": 0.0, "steps": 2, "calls": {"done": 0, "failed": 0, "unknown": 1, "not_run": 0}, "duration_ms": 4000}',
            '11 t1 item.updated {"item": {"id": "c00000001", "type": "tool_call", "outcome": "done", "result": "deleted after all", "attached": [], "late": true}}',
        ]
    )


def test_every_stop_reason_has_a_word_that_others_know() -> None:
    assert set(STOP_REASONS) == set(StopReason)


def test_a_model_that_fails_for_good_fails_the_turn() -> None:
    played = play("Hi", [Fails(Failure.REJECTED, "no such model")])

    assert lines(replayed("s1", played.events))[-2:] == snapshot(
        [
            '3 t1 step.failed {"step": 1, "failure": "rejected", "detail": "no such model", "window": null, "tokens": null}',
            '4 t1 turn.failed {"error": {"message": "The server refused the request: no such model"}, "stop_reason": "error", "reason": "model failed", "result": "The run stopped (model failed) without an answer from the model. The server refused the request: no such model\\nNo tool was called, and nothing was changed by one.", "usage": {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0}, "cost_usd": 0.0, "steps": 1, "calls": {"done": 0, "failed": 0, "unknown": 0, "not_run": 0}, "duration_ms": 1000}',
        ]
    )
    assert result_object("s1", played.state) == snapshot(
        {
            "type": "result",
            "subtype": "error_during_execution",
            "is_error": True,
            "result": """\
The run stopped (model failed) without an answer from the model. The server refused the request: no such model
No tool was called, and nothing was changed by one.\
""",
            "session_id": "s1",
            "num_turns": 1,
            "duration_ms": 1000,
            "usage": {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0},
            "total_cost_usd": 0.0,
            "stop_reason": "error",
        }
    )


def test_the_result_object_has_the_field_names_that_scripts_know() -> None:
    assert result_object("s1", a_run().state) == snapshot(
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": "It is noon.",
            "session_id": "s1",
            "num_turns": 2,
            "duration_ms": 4000,
            "usage": {"input_tokens": 9311, "output_tokens": 15, "cache_read_input_tokens": 512},
            "total_cost_usd": 0.0015,
            "stop_reason": "end_turn",
        }
    )


def test_there_is_no_result_object_of_a_run_that_goes_on() -> None:
    with pytest.raises(ValueError, match="no run of the session s1 has stopped"):
        result_object("s1", NEW)


@given(st.text(st.characters() | st.sampled_from("\ud83d\udc00\0\n\r\x85\u2028\u2029")))
def test_a_line_is_one_line_of_utf8_whatever_is_in_it(text: str) -> None:
    envelope = Feed("s1").warning("test", text, float("nan"))

    line = ndjson(envelope)

    assert len(line.decode().splitlines()) == 1
    told = json.loads(line)["detail"]
    assert told == text or not text.isprintable()
    told.encode()


# --- laws ---------------------------------------------------------------------------------------


@given(sessions(), st.integers(0, 2**32))
def test_every_item_that_is_started_is_completed_exactly_once_and_seq_never_goes_back(
    trace: Trace, seed: int
) -> None:
    keeps_its_word(trace.log, Random(seed))


@given(st.integers(0, 2**64))
def test_so_it_is_in_the_simulated_world(seed: int) -> None:
    world = World(Random(seed))
    world.play()

    keeps_its_word(world.log, Random(seed))


def keeps_its_word(log: list[Event], random: Random) -> None:
    feed, live = Feed("s1"), list[Envelope]()
    for seq, event in enumerate(log, 1):
        live += feed.stored(seq, event)
        if isinstance(event, ModelAsked):
            for _ in range(random.randint(0, 4)):
                piece = random.choice((Said("a"), Thought("b"), TakenBack("c")))
                live += feed.passing(Passing(piece), 0.0)

    durable = [each for each in live if each.durable]
    assert durable == replayed("s1", log)
    place = random.randint(1, len(log))
    assert [each for each in durable if each.seq > place] == taken_up(log, place)
    numbers = [each.seq for each in live]
    assert numbers == sorted(numbers)
    assert {each.seq for each in live} <= set(range(1, len(log) + 1))
    begun, done = items(live, "item.started"), items(live, "item.completed")
    assert len(begun) == len(set(begun))
    assert len(done) == len(set(done))
    assert set(begun) <= set(done)
    ends = [each.turn for each in live if each.type in ("turn.completed", "turn.failed")]
    assert ends == [each.turn for each in live if each.type == "turn.started"]
    assert all(json.loads(ndjson(each))["seq"] == each.seq for each in live)


def taken_up(log: list[Event], place: int) -> list[Envelope]:
    """What somebody is told who begins to watch behind this event."""
    feed = Feed("s1", replay(log[:place]), seq=place)
    rest = enumerate(log[place:], place + 1)
    return [each for seq, event in rest for each in feed.stored(seq, event)]


def items(envelopes: list[Envelope], kind: str) -> list[object]:
    found = [each.body["item"] for each in envelopes if each.type == kind]
    return [item["id"] for item in found if isinstance(item, dict)]


# --- beginnings ---------------------------------------------------------------------------------


def one_tool() -> Settings:
    return Settings(model="a", tools=(ToolSpec(name="rm"),), limits=Limits(rounds=4))


def open_call() -> list[Event]:
    """A session up to a call that is about to run."""
    spoke = step(NEW, UserSpoke("Delete it", 1.0, one_tool()))
    reply = Reply(calls=(wants("rm", path="a"),))
    return [*spoke.events, *step(spoke.state, ModelReplied(1, reply, 2.0)).events]


async def nothing(arguments: Arguments, context: Context) -> str:
    return ""


def a_question() -> Question:
    tool = Tool(
        spec=ToolSpec(name="rm"),
        parse=json.loads,
        touch=lambda arguments, workspace: Touch(Access.EXECUTE),
        run=nothing,
    )
    return Question(
        call=ToolCall("c00000001", "rm", '{"path": "a"}'),
        tool=tool,
        touch=Touch(Access.EXECUTE, ("rm -r build",), "it deletes"),
        why="no rule allows it",
        preview="build/",
        suggestion="rm(*)",
    )


def begun() -> tuple[Feed, int]:
    """A feed whose model has just been asked."""
    feed = Feed("s1")
    events = step(NEW, UserSpoke("What time is it?", 1.0, one_tool())).events
    for seq, event in enumerate(events, 1):
        feed.stored(seq, event)
    return feed, len(events)
