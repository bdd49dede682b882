"""Buddy's five events, with the names and fields of its `AgentUiEvent`."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from holdfast.core.events import Event, Failure, ModelReplied, Reply, UserSpoke
from holdfast.core.limits import Settings, Usage
from holdfast.core.machine import step
from holdfast.core.state import NEW
from holdfast.models.base import Said, Thought
from holdfast.runtime.buddy import AgentUiEvent, Buddy, ToolCall, ToolResult, encoded
from holdfast.testing.script import Fails, Says, play, says, several, wants
from holdfast.testing.world import World


def shown(events: list[Event]) -> list[AgentUiEvent]:
    buddy = Buddy(7)
    return [each for event in events for each in buddy.stored(event)]


def test_a_whole_run_reads_like_this() -> None:
    script = [
        Says(Reply(reasoning="A clock will know.", calls=(wants("clock", zone="UTC"),))),
        several(wants("nothing"), text="And this?"),
        says(""),
        says("It is noon.", usage=Usage(prompt=600, completion=7)),
    ]

    played = play("What time is it?", script, {"clock": "12:00"})

    assert [encoded(each) for each in shown(played.events)] == snapshot(
        [
            {
                "TokenUsage": {
                    "task_id": 7,
                    "prompt_tokens": 211,
                    "completion_tokens": 9,
                    "session_total": 220,
                }
            },
            {"ReasoningTrace": {"task_id": 7, "field": "reasoning", "trace": "A clock will know."}},
            {"ToolCall": {"task_id": 7, "name": "clock", "args": '{"zone":"UTC"}'}},
            {
                "ToolResult": {
                    "task_id": 7,
                    "name": "clock",
                    "args": '{"zone":"UTC"}',
                    "result": "12:00",
                }
            },
            {
                "TokenUsage": {
                    "task_id": 7,
                    "prompt_tokens": 241,
                    "completion_tokens": 7,
                    "session_total": 468,
                }
            },
            {"ToolCall": {"task_id": 7, "name": "nothing", "args": "{}"}},
            {
                "ToolResult": {
                    "task_id": 7,
                    "name": "nothing",
                    "args": "{}",
                    "result": "There is no tool named 'nothing'. Some that exist: clock.",
                }
            },
            {
                "TokenUsage": {
                    "task_id": 7,
                    "prompt_tokens": 281,
                    "completion_tokens": 4,
                    "session_total": 753,
                }
            },
            {
                "Warning": {
                    "task_id": 7,
                    "message": "You returned an empty response after processing 2 tool call(s). If there are more files to process, call the next tool now. If the task is complete, provide a final summary of what was done.",
                }
            },
            {
                "TokenUsage": {
                    "task_id": 7,
                    "prompt_tokens": 600,
                    "completion_tokens": 7,
                    "session_total": 1360,
                }
            },
        ]
    )


def test_a_failure_of_the_model_is_a_warning() -> None:
    played = play("Hi", [Fails(Failure.GONE, "connection reset")])

    assert [encoded(each) for each in shown(played.events)] == snapshot(
        [{"Warning": {"task_id": 7, "message": "the model failed: gone: connection reset"}}]
    )


def test_the_name_that_the_server_has_for_its_reasoning_is_kept() -> None:
    done = step(NEW, UserSpoke("Hi", 1.0, Settings()))
    buddy = Buddy(7, done.state)
    buddy.piece(Thought("hm", "thinking"))
    buddy.piece(Said("Hello."))

    told = buddy.stored(ModelReplied(1, Reply(text="Hello.", reasoning="hm"), 2.0))

    assert [encoded(each) for each in told] == snapshot(
        [
            {
                "TokenUsage": {
                    "task_id": 7,
                    "prompt_tokens": 201,
                    "completion_tokens": 7,
                    "session_total": 208,
                }
            },
            {"ReasoningTrace": {"task_id": 7, "field": "thinking", "trace": "hm"}},
        ]
    )


@given(st.integers(0, 2**64))
def test_every_call_has_one_result_whatever_happens(seed: int) -> None:
    world = World(Random(seed))
    world.play()

    told = shown(world.log)

    called = Counter(each.name for each in told if isinstance(each, ToolCall))
    answered = Counter(each.name for each in told if isinstance(each, ToolResult))
    assert called == answered
