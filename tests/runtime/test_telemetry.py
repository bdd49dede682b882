"""Spans tell what a run did, by the names of the conventions, and none is ever left open."""

import subprocess
import sys
from collections.abc import Iterable
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes

from holdfast.core.events import Event, Failure, Outcome, Reopened, Reply, ToolFinished, ToolStarted
from holdfast.core.limits import Settings, Usage
from holdfast.core.machine import replay
from holdfast.core.state import NEW, State
from holdfast.core.tools import ToolSpec
from holdfast.runtime.telemetry import Telemetry
from holdfast.testing.script import Fails, Played, Says, calls, play, says, several, wants
from holdfast.testing.world import World
from tests.core.sessions import Trace, sessions


def spans(
    events: Iterable[Event], state: State = NEW, *, content: bool = False, close: bool = False
) -> list[ReadableSpan]:
    """What a tracer got to see, in the order in which the spans ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(provider.get_tracer("test"), "s1", state, content=content)
    for event in events:
        telemetry.stored(event)
    if close:
        telemetry.close()
    provider.shutdown()
    return list(exporter.get_finished_spans())


def lines(found: list[ReadableSpan]) -> list[str]:
    names = {each.context.span_id: each.name for each in found if each.context}
    return [
        f"{names.get(each.parent.span_id) if each.parent else None} > {each.name} "
        f"[{seconds(each.start_time)}-{seconds(each.end_time)}] {each.status.status_code.name} "
        f"{dict(each.attributes or {})}"
        for each in found
    ]


def seconds(nanoseconds: int | None) -> float:
    return (nanoseconds or 0) / 1e9


def one_tool() -> Settings:
    return Settings(model="ollama/qwen3:8b", tools=(ToolSpec(name="clock"),))


def a_run() -> Played:
    used = Usage(prompt=210, completion=7, cached=128)
    script = [
        Says(Reply(calls=(wants("clock", zone="UTC"), wants("nothing"))), used),
        says("It is noon."),
    ]
    return play("What time is it?", script, {"clock": "12:00"}, one_tool())


def test_a_whole_run_reads_like_this() -> None:
    assert lines(spans(a_run().events)) == snapshot(
        [
            "invoke_agent holdfast > chat qwen3:8b [1.0-2.0] UNSET {'gen_ai.operation.name': 'chat', 'gen_ai.conversation.id': 's1', 'gen_ai.request.max_tokens': 2000, 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'qwen3:8b', 'holdfast.ask': 1, 'holdfast.purpose': 'work', 'gen_ai.response.finish_reasons': ('tool_calls',), 'gen_ai.usage.input_tokens': 210, 'gen_ai.usage.output_tokens': 7, 'gen_ai.usage.cache_read.input_tokens': 128}",
            "invoke_agent holdfast > execute_tool nothing [2.0-2.0] ERROR {'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'nothing', 'gen_ai.tool.call.id': 'c00000002', 'gen_ai.tool.type': 'function', 'error.type': 'not run'}",
            "invoke_agent holdfast > execute_tool clock [3.0-4.0] UNSET {'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'clock', 'gen_ai.tool.call.id': 'c00000001', 'gen_ai.tool.type': 'function'}",
            "invoke_agent holdfast > chat qwen3:8b [4.0-5.0] UNSET {'gen_ai.operation.name': 'chat', 'gen_ai.conversation.id': 's1', 'gen_ai.request.max_tokens': 2000, 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'qwen3:8b', 'holdfast.ask': 2, 'holdfast.purpose': 'work', 'gen_ai.response.finish_reasons': ('stop',)}",
            "None > invoke_agent holdfast [1.0-5.0] UNSET {'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'holdfast', 'gen_ai.conversation.id': 's1', 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'qwen3:8b', 'holdfast.run': 1, 'holdfast.resumed': False, 'gen_ai.usage.input_tokens': 514, 'gen_ai.usage.output_tokens': 15, 'gen_ai.usage.cache_read.input_tokens': 128, 'holdfast.stop_reason': 'answered'}",
        ]
    )


def test_what_was_said_is_told_only_where_it_was_asked_for() -> None:
    events = a_run().events

    assert not any("noon" in line or "UTC" in line for line in lines(spans(events)))
    told = " ".join(lines(spans(events, content=True)))
    assert all(words in told for words in ("What time is it?", "It is noon.", "UTC", "12:00"))


def test_a_failure_of_the_model_is_an_error_of_its_span_and_of_the_run() -> None:
    played = play("Hi", [Fails(Failure.GONE, "reset")], settings=one_tool())

    assert lines(spans(played.events)) == snapshot(
        [
            "invoke_agent holdfast > chat qwen3:8b [1.0-2.0] ERROR {'gen_ai.operation.name': 'chat', 'gen_ai.conversation.id': 's1', 'gen_ai.request.max_tokens': 2000, 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'qwen3:8b', 'holdfast.ask': 1, 'holdfast.purpose': 'work', 'error.type': 'gone'}",
            "None > invoke_agent holdfast [1.0-2.0] ERROR {'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'holdfast', 'gen_ai.conversation.id': 's1', 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'qwen3:8b', 'holdfast.run': 1, 'holdfast.resumed': False, 'gen_ai.usage.input_tokens': 0, 'gen_ai.usage.output_tokens': 0, 'gen_ai.usage.cache_read.input_tokens': 0, 'holdfast.stop_reason': 'model failed', 'error.type': 'model failed'}",
        ]
    )


def test_a_crash_ends_what_was_under_way_and_a_late_result_opens_nothing() -> None:
    played = play("What time?", [several(wants("clock"))], settings=one_tool())
    events = [*played.events[:4], ToolStarted("c00000001", 5.0)]
    crashed = Played([], {}, replay(events), list(events))
    crashed.killed()
    crashed.cancel()
    crashed.only(ToolFinished("c00000001", Outcome.DONE, "12:00", 9.0))

    assert lines(spans(crashed.events)) == snapshot(
        [
            "invoke_agent holdfast > chat qwen3:8b [1.0-2.0] UNSET {'gen_ai.operation.name': 'chat', 'gen_ai.conversation.id': 's1', 'gen_ai.request.max_tokens': 2000, 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'qwen3:8b', 'holdfast.ask': 1, 'holdfast.purpose': 'work', 'gen_ai.response.finish_reasons': ('tool_calls',)}",
            "invoke_agent holdfast > execute_tool clock [5.0-5.0] ERROR {'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'clock', 'gen_ai.tool.call.id': 'c00000001', 'gen_ai.tool.type': 'function', 'error.type': 'unknown'}",
            "invoke_agent holdfast > chat qwen3:8b [5.0-5.0] ERROR {'gen_ai.operation.name': 'chat', 'gen_ai.conversation.id': 's1', 'gen_ai.request.max_tokens': 2000, 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'qwen3:8b', 'holdfast.ask': 2, 'holdfast.purpose': 'work', 'error.type': 'given up'}",
            "None > invoke_agent holdfast [1.0-5.0] UNSET {'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'holdfast', 'gen_ai.conversation.id': 's1', 'gen_ai.provider.name': 'ollama', 'gen_ai.request.model': 'qwen3:8b', 'holdfast.run': 1, 'holdfast.resumed': False, 'gen_ai.usage.input_tokens': 205, 'gen_ai.usage.output_tokens': 4, 'gen_ai.usage.cache_read.input_tokens': 0, 'holdfast.stop_reason': 'cancelled'}",
        ]
    )


def test_a_call_that_is_run_again_after_a_crash_has_a_span_for_each_time() -> None:
    played = play("What time?", [calls("clock")], {"clock": "12:00"})
    started = next(n for n, one in enumerate(played.events) if isinstance(one, ToolStarted))
    played.script.append(says("Noon."))
    played.killed(kept=started + 1)

    found = [each for each in spans(played.events) if each.name == "execute_tool clock"]

    assert [(each.attributes or {}).get("error.type") for each in found] == ["crashed", None]


def test_a_clock_that_was_set_back_gives_no_span_that_ends_before_it_began() -> None:
    played = play("What time?", [], settings=one_tool())

    found = spans([*played.events, Reopened(-3_600.0)], close=True)

    assert [each.name for each in found] == ["chat qwen3:8b", "invoke_agent holdfast"]
    assert all((each.end_time or 0) >= (each.start_time or 0) for each in found)


def test_a_run_that_another_process_takes_up_gets_a_span_for_what_is_left() -> None:
    played = play("What time?", [calls("clock")], {"clock": "12:00"})
    first = list(played.events)
    state = replay(first)
    played.script.append(says("Noon."))
    played.killed()

    found = spans(played.events[len(first) :], state)

    assert [each.name for each in found] == ["chat", "invoke_agent holdfast"]
    assert found[-1].attributes
    assert found[-1].attributes["holdfast.resumed"] is True


def test_closing_ends_what_is_open() -> None:
    played = play("What time?", [], settings=one_tool())

    assert [each.name for each in spans(played.events)] == []
    assert [each.name for each in spans(played.events, close=True)] == [
        "chat qwen3:8b",
        "invoke_agent holdfast",
    ]


def test_the_names_are_those_of_the_conventions() -> None:
    known = {
        value
        for module in (gen_ai_attributes, error_attributes)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    failing = play("Hi", [Fails(Failure.GONE, "reset")], settings=one_tool())
    found = [*spans(a_run().events, content=True), *spans(failing.events)]

    used = {name for each in found for name in each.attributes or {}}

    assert {name for name in used if not name.startswith("holdfast.")} <= known
    assert len(used) > 15


@given(sessions())
def test_no_span_is_left_open_whatever_happens(trace: Trace) -> None:
    all_ended(trace.log)


@given(st.integers(0, 2**64))
def test_so_it_is_in_the_simulated_world(seed: int) -> None:
    world = World(Random(seed))
    world.play()

    all_ended(world.log)


class Counting(SimpleSpanProcessor):
    """Counts what was begun."""

    begun = 0

    def on_start(self, span: object, parent_context: object = None) -> None:
        self.begun += 1


def all_ended(log: list[Event]) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    counting = Counting(exporter)
    provider.add_span_processor(counting)
    telemetry = Telemetry(provider.get_tracer("test"), "s1")
    for event in log:
        telemetry.stored(event)

    found = exporter.get_finished_spans()
    assert len(found) == counting.begun
    assert all((each.end_time or 0) >= (each.start_time or 0) for each in found)
    runs = [each for each in found if each.name.startswith("invoke_agent")]
    assert len(runs) == replay(log).runs
    provider.shutdown()


def test_who_does_not_use_it_does_not_load_it() -> None:
    code = "import sys, holdfast.runtime.telemetry; print('opentelemetry' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
