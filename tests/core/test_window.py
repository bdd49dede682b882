"""What is sent fits, leaves in stages, and never loses the user's words or parts a pair."""

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from holdfast.core.effects import Request
from holdfast.core.events import (
    Evicted,
    Failure,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    Pinned,
    Reply,
    TaskCut,
    ToolsChanged,
    UserSpoke,
)
from holdfast.core.eviction import evict, headed
from holdfast.core.history import Entry, History, Line, call_id
from holdfast.core.limits import Budget, Caps, Settings, StopReason
from holdfast.core.messages import (
    AssistantMessage,
    Message,
    Note,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.core.tokens import LOCALCOWORK, Gauge, Size, size_of, size_of_system, size_of_tools
from holdfast.core.tools import ToolSpec
from holdfast.core.window import Frame, relief, squeeze
from holdfast.testing.script import Played, Says, calls, play, says, several, wants

READ = ToolSpec(name="read", mutates=False)
SYSTEM = "You are an agent."


def long(call: ToolCall) -> str:
    """A result that begins with its arguments and is longer than any cap here."""
    return f"{call.arguments} and so on, word for word. " * 300


def reads(count: int, prefix: str = "f") -> list[Says]:
    return [calls("read", path=f"/in/{prefix}{number}.txt") for number in range(count)]


def small(window: int = 8_192, *tools: ToolSpec, system: str = SYSTEM) -> Settings:
    return Settings.for_window(window, system=system, tools=tools or (READ,))


def evictions(played: Played) -> list[Evicted]:
    return [event for event in played.events if isinstance(event, Evicted)]


def asked(played: Played) -> list[ModelAsked]:
    return [event for event in played.events if isinstance(event, ModelAsked)]


def said_by_user(request: Request) -> list[str]:
    return [m.text for m in request.messages if isinstance(m, UserMessage)]


def results(request: Request) -> list[ToolMessage]:
    return [m for m in request.messages if isinstance(m, ToolMessage)]


def text_of(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)


def paired(messages: Iterable[Message]) -> bool:
    owed: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if owed[:1] != [message.call_id]:
                return False
            owed = owed[1:]
        elif owed:
            return False
        elif isinstance(message, AssistantMessage):
            owed = [call.id for call in message.calls]
    return not owed


# --- room -----------------------------------------------------------------------------------


def test_room_is_the_window_less_all_that_is_reserved_and_measured() -> None:
    tools = (
        ToolSpec(name="n" * 80, description="d" * 100, parameters=f'{{"title":"{"p" * 88}"}}'),
    )
    fixed = size_of_system("s" * 320) + size_of_tools(tools)
    budget = Budget(output=1_000, safety=100)
    frame = Frame(Gauge(LOCALCOWORK), budget, 10_000, fixed)

    history = size_of(UserMessage("u" * 32)) + size_of(ToolMessage("c1", "t", "r" * 28))

    assert frame.room(Size()) == 10_000 - 1_000 - 100 - (100 + 4) - 100
    assert frame.room(history) == frame.room(Size()) - (10 + 4) - (10 + 4)


def test_what_a_request_is_expected_to_cost_is_measured_from_all_it_holds() -> None:
    settings = replace(small(), rates=LOCALCOWORK)
    played = play("read", reads(3), {"read": long}, settings)
    played.script += [*reads(9, "g"), says("done")]
    more = ToolSpec(name="ocr", description="Reads pictures. " * 20)
    played.only(ToolsChanged((READ, more), played.tick()))
    played.happens(ModelReplied(4, Reply(calls=(wants("read", path="x"),)), played.tick()))

    def measured(request: Request) -> int:
        size = size_of_system(request.system) + size_of_tools(request.tools)
        return Gauge(LOCALCOWORK).expect(sum(map(size_of, request.messages), size)).safe

    assert [measured(request) for request in played.requests] == [
        event.expected for event in asked(played)
    ]
    assert played.requests[-1].tools == (READ, more)


# --- laws over random histories -------------------------------------------------------------

Round = tuple[str, list[tuple[int, bool]]]
ROUNDS: st.SearchStrategy[list[Round]] = st.lists(
    st.tuples(
        st.sampled_from(["reply", "reply", "reply", "user", "run", "note"]),
        st.lists(st.tuples(st.integers(0, 5_000), st.booleans()), max_size=4),
    ),
    min_size=1,
    max_size=14,
)
CAPS = Caps(result=5_000, line=200, digest=1_500)
TASK, STEER = "the task of the run", "the latest word"
FILLER = "value 4711 in /var/log/x.txt, and so on. " * 130


def history_of(rounds: list[Round], task: str = TASK) -> History:
    history, number = History().hearing(task, Caps(), 1, begins_run=True), 0
    for kind, sizes in rounds:
        if kind == "user":
            history = history.hearing(STEER, Caps(), 1, begins_run=False)
        elif kind == "run":
            history = history.hearing(task, Caps(), 1, begins_run=True)
        elif kind == "note":
            history = history.saying(Note("a nudge"))
        else:
            wanted = tuple(ToolCall(call_id(number + n), "read", "{}") for n in range(len(sizes)))
            number += len(sizes)
            reply = AssistantMessage("I look.", wanted)
            texts = [FILLER[:size] for size, _ in sizes]
            answers = [
                ToolMessage(call.id, "read", text, failed=failed)
                for call, text, (_, failed) in zip(wanted, texts, sizes, strict=True)
            ]
            entries = [Entry(reply, size_of(reply))]
            entries += [Entry(each, size_of(each), length=len(each.text)) for each in answers]
            history = history.with_entries(entries)
    return history


def framed(window: int) -> Frame:
    budget = Budget(window=window, output=300, safety=50, min_round=400, evict_below=900,
                    evict_to=window // 2)  # fmt: skip
    return Frame(Gauge(LOCALCOWORK), budget, window, size_of_system(SYSTEM))


WINDOWS = st.integers(2_400, 9_000)


def old(history: History, rounds: int) -> range:
    """Positions before the newest so many rounds."""
    replies = [n for n, e in enumerate(history.body) if isinstance(e.message, AssistantMessage)]
    return range(replies[-rounds] if len(replies) >= rounds else 0)


@given(ROUNDS, WINDOWS)
def test_however_much_leaves_pairs_stay_and_the_users_words_are_there_once(
    rounds: list[Round], window: int
) -> None:
    history, frame = history_of(rounds), framed(window)
    for _ in range(200):
        plan = relief(history, frame, CAPS) or squeeze(history, frame, CAPS, frame.budget.min_round)
        if plan is None:
            break
        size = frame.expected(history.size)
        history = evict(history, plan, CAPS, {}, run=1)
        entries = [*history.head, *history.body]
        said = [e.message.text for e in entries if isinstance(e.message, UserMessage)]
        assert paired(entry.message for entry in entries)
        assert history.size == sum((entry.size for entry in entries), Size())
        # Two digests may be new, of this run and of those before, each with a title.
        assert frame.expected(history.size) <= size + 80
        assert {each.text for each in history.spoken} <= set(said)
        heads = [e.message.text for e in history.head if isinstance(e.message, UserMessage)]
        assert heads == [each.text for each in history.spoken if each.position is None]
    else:
        raise AssertionError("it never comes to rest")


@given(ROUNDS, WINDOWS)
def test_relief_spares_the_newest_rounds_and_the_newest_failures(
    rounds: list[Round], window: int
) -> None:
    history, frame = history_of(rounds), framed(window)
    plan = relief(history, frame, CAPS) or Evicted()
    failures = [
        position
        for position, entry in enumerate(history.body)
        if isinstance(entry.message, ToolMessage) and entry.message.failed
    ]

    fading = [each.position for each in plan.fading]
    assert all(position in old(history, 3) for position in fading)
    assert plan.dropped <= len(old(history, 3))
    assert not set(fading) & set(failures[-3:])
    assert all(each.to == 0 for each in plan.fading)


@settings(max_examples=60, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(ROUNDS, WINDOWS, st.sampled_from([TASK, "a longer task " * 200]))
def test_after_relief_there_is_room_to_about_the_low_mark_or_nothing_old_is_left(
    rounds: list[Round], window: int, task: str
) -> None:
    history, frame = history_of(rounds, task), framed(window)
    caps = small(window).caps
    plan = relief(history, frame, caps)
    if plan is None:
        return
    after = evict(history, plan, caps, {}, run=1)

    about = frame.budget.evict_to - window // 10
    assert frame.room(after.size) >= about or plan.dropped == len(old(history, 3))


# --- stages ---------------------------------------------------------------------------------


def test_old_results_fade_before_any_round_leaves_and_finished_runs_leave_first() -> None:
    played = play("the first task", [*reads(4, "a"), says("one")], {"read": long}, small(6_000))
    played.script += [*reads(16, "b"), says("two")]
    played.user("the second task")

    plans = evictions(played)
    first_drop = next(number for number, plan in enumerate(plans) if plan.dropped)
    left = [line.text.split(";")[0] for line in played.state.history.lines]
    assert first_drop > 0
    assert all(plan.fading for plan in plans[:first_drop])
    assert left == sorted(
        left, key=lambda line: (line.startswith("op=read(path=/in/b"), left.index(line))
    )
    assert [text for text in said_by_user(played.requests[-1])] == ["the second task"]


def test_the_newest_rounds_and_the_newest_failures_stay_whole_while_others_fade() -> None:
    script = [calls("ocr", path="/in/x.png"), *reads(9), says("done")]
    played = play(
        "work",
        script,
        {"read": long, "ocr": OSError("E-77: unreadable " + "page " * 200)},
        small(8_192, READ, ToolSpec(name="ocr")),
    )

    whole = [message.text for message in results(played.requests[-1])]
    assert not evictions(played)[0].dropped
    assert whole[0].startswith("E-77: unreadable page page")
    assert whole[1].startswith("[earlier result c00000002 of 14,400 chars, shortened: ")
    assert all(text.startswith('{"path"') for text in whole[-3:])


def test_an_eviction_leaves_room_for_rounds_to_come_and_the_prompt_begins_as_before() -> None:
    played = play("read all", [*reads(40), says("done")], {"read": long}, small(16_384))

    since, gaps = 0, list[int]()
    for event in played.events:
        if isinstance(event, Evicted):
            gaps, since = [*gaps, since], 0
        since += isinstance(event, ModelAsked)
    assert min(gaps[1:]) >= 2
    assert played.stopped.reason is StopReason.ANSWERED


# --- the digest -----------------------------------------------------------------------------


def test_evicted_actions_are_told_with_what_later_calls_need() -> None:
    def order(call: ToolCall) -> str:
        number = json.loads(call.arguments)["n"]
        where = f"/orders/{number}.pdf"
        return json.dumps({"order_id": f"W-{number}", "file": where, "story": "so it goes " * 90})

    script = [*(calls("read", n=number) for number in range(4400, 4440)), says("done")]
    played = play("check the orders", script, {"read": order}, small(4_096))

    title, *lines = next(
        e.message.text for e in played.requests[-1].head if "in this run" in e.message.text
    ).splitlines()
    assert title.startswith("[Earlier in this run, recorded by the harness")
    assert lines
    for line in lines:
        number = line.removeprefix("- op=read(n=")[:4]
        assert line.startswith(f"- op=read(n={number}); id=c")
        assert "; status=success; detail=" in line
        assert f"W-{number}" in line
        assert f"/orders/{number}.pdf" in line


def test_the_digest_does_not_say_of_a_failed_call_that_it_is_done() -> None:
    lines = (Line(1, "op=send(to=ana); status=failure; detail=no connection"),)
    (digest,) = headed(History(lines=lines), {}, run=1).head

    assert "these things are done" not in digest.message.text


@given(st.lists(st.integers(1, 400), max_size=60), st.integers(320, 3_000))
def test_the_digest_is_bounded_and_counts_what_it_leaves_out(lengths: list[int], cap: int) -> None:
    caps, history = Caps(digest=cap, line=320), History().hearing(TASK, Caps(), 1, begins_run=True)
    for number, length in enumerate(lengths):
        call = ToolCall(call_id(number), "read", "{}")
        reply, result = AssistantMessage("", (call,)), ToolMessage(call.id, "read", "x" * length)
        entries = [Entry(each, size_of(each)) for each in (reply, result)]
        history = evict(history.with_entries(entries), Evicted(dropped=3 if not number else 2),
                        caps, {}, run=1)  # fmt: skip

    shown = [line.text for line in history.lines]
    assert sum(map(len, shown)) <= cap
    assert len(shown) + history.forgotten == len(lengths)
    text = "\n".join(entry.message.text for entry in history.head)
    assert (f"(… and {history.forgotten} earlier actions)" in text) == bool(history.forgotten)


@pytest.mark.parametrize("window", [1_024, 1_500, 2_048, 4_096, 8_192, 32_768])
def test_the_newest_evicted_action_is_in_the_digest_of_every_window(window: int) -> None:
    call = ToolCall("c00000001", "read", '{"path":"/in/a.txt"}')
    failure = ToolMessage(call.id, "read", "E-77: the disk is gone. " * 40, failed=True)
    history = (
        History()
        .hearing(TASK, Caps(), 1, begins_run=True)
        .saying(AssistantMessage("", (call,)), failure)
    )

    after = evict(history, Evicted(dropped=3), small(window).caps, {}, run=1)

    assert "E-77" in "".join(entry.message.text for entry in after.head)


@pytest.mark.parametrize("begins_run", [True, False])
def test_words_of_the_user_that_others_replaced_in_the_head_become_a_line_of_the_digest(
    begins_run: bool,
) -> None:
    reply = AssistantMessage("I begin.")
    history = History().hearing("the task", Caps(), 1, begins_run=True)
    history = history.hearing("Ana's bills first", Caps(), 1, begins_run=begins_run).saying(reply)
    history = evict(history, Evicted(dropped=3), Caps(), {}, run=2)
    assert "Ana's bills first" in "".join(entry.message.text for entry in history.head)

    history = history.hearing("then the receipts", Caps(), 1, begins_run=begins_run).saying(reply)
    history = evict(history, Evicted(dropped=2), Caps(), {}, run=3)

    assert "Ana's bills first" in "".join(entry.message.text for entry in history.head)


# --- too much at once -----------------------------------------------------------------------


def fits(played: Played) -> bool:
    run = played.state.run
    assert run is not None
    budget = run.settings.budget
    return all(event.expected + budget.output <= budget.window for event in asked(played))


def test_one_enormous_round_is_squeezed_and_says_how_to_read_the_rest() -> None:
    more = ToolSpec(name="read_result", mutates=False)
    wanted = [wants("read", path=f"{number}") for number in range(30)]
    played = play("x", [several(*wanted), says("done")], {"read": long}, small(8_192, READ, more))

    assert (played.stopped.text, fits(played), len(results(played.requests[-1]))) == (
        "done",
        True,
        30,
    )
    for message in results(played.requests[-1]):
        assert f'read_result(call_id="{message.call_id}")' in message.text


def test_one_round_with_enormous_arguments_is_squeezed_too() -> None:
    wanted = [wants("write", path=f"{n}.txt", content="word by word " * 900) for n in range(12)]
    tools = {"write": "ok"}
    for window in (8_192, 32_768):
        chosen = small(window, ToolSpec(name="write"))
        played = play("x", [several(*wanted), says("done")], tools, chosen)

        assert (played.stopped.text, fits(played)) == ("done", True)


def test_a_message_that_is_too_long_by_itself_is_visibly_cut_and_kept_whole() -> None:
    task = "Read this: " + "word " * 20_000 + "and sum it up."
    played = play(task, [says("done")], {}, small())

    (said,) = said_by_user(played.requests[0])
    state = played.state.history.spoken[0]
    assert (state.text, played.stopped.text, fits(played)) == (task, "done", True)
    assert any(isinstance(event, TaskCut) for event in played.events)
    assert said.startswith("Read this: word ")
    assert said.endswith("and sum it up.")
    assert f" of {len(task)} chars]" in said


def test_a_long_paste_and_a_word_after_it_do_not_end_the_run() -> None:
    played = Played([], {"read": long}).user("the task", small())
    played.only(UserSpoke("look: " + "paste " * 12_000, played.tick()))
    played.only(UserSpoke("thanks", played.tick()))
    played.script += [says("done")]
    played.happens(ModelReplied(1, Reply(calls=(wants("read", path="z"),)), played.tick()))

    assert (played.stopped.text, fits(played)) == ("done", True)


def test_a_tool_that_keeps_its_newest_three_loses_none_of_two() -> None:
    cite = ToolSpec(name="cite", mutates=False, keep_last=3)
    script = [*(calls("cite", n=n) for n in range(5)), says("Done.")]

    played = play(
        "cite", script, {"cite": lambda call: call.arguments * 400}, Settings(tools=(cite,))
    )

    for number, request in enumerate(played.requests):
        results = [m.text for m in request.messages if isinstance(m, ToolMessage)]
        whole = [not text.startswith("[earlier result") for text in results]
        assert whole == [False] * max(0, number - 3) + [True] * min(3, number)


def test_what_is_pinned_is_never_cut_to_make_room() -> None:
    tool = ToolSpec(name="read", mutates=False)
    small = Settings.for_window(4_096, tools=(tool,))
    played = play("read", [calls("read", n=1)], {"read": "text " * 900}, small)
    plan = "step " * (small.caps.pin // 5 - 1)

    played.only(Pinned("plan", plan, played.tick()))
    played.only(ModelFailed(2, Failure.OVERFLOW, "too long", played.tick()))

    assert played.state.run is not None
    assert any(
        plan in each.message.text
        for each in (*played.state.history.head, *played.state.history.body)
    )
