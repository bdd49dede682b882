"""Whatever a model sends is made safe to keep and to send on, and equal calls are seen as equal."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.effects import CallModel, Effect, Request
from holdfast.core.events import (
    Evicted,
    Finish,
    ModelAsked,
    ModelReplied,
    Pinned,
    Reply,
    ToolFinished,
    UserSpoke,
    WantedCall,
)
from holdfast.core.history import (
    NAME_CAP,
    Entry,
    History,
    OpenCall,
    Spoken,
    closed,
    opened,
)
from holdfast.core.limits import Budget, Caps, Settings, StopReason
from holdfast.core.messages import (
    AssistantMessage,
    Note,
    ToolCall,
    ToolMessage,
    UserMessage,
    clean,
)
from holdfast.core.tokens import Size, size_of
from holdfast.core.tools import ToolSpec
from holdfast.testing.script import Played, Says, calls, play, says, wants

ANY_CHARACTER = st.characters() | st.characters(categories=("Cs", "Cc"))
ANY_TEXT = st.text(ANY_CHARACTER | st.sampled_from('{}[]",:\\ \n\0'), max_size=60)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
ANY_OBJECT = st.dictionaries(ANY_TEXT, ANY_JSON, max_size=5)
ANY_ARGUMENTS = ANY_TEXT | ANY_JSON.map(json.dumps) | ANY_OBJECT.map(json.dumps)
ANY_CALL = st.builds(WantedCall, name=ANY_TEXT, arguments=ANY_ARGUMENTS, id=ANY_TEXT)
NOT_JSON = (
    "Not run: the arguments of 'read' were not a JSON object. Send one object with double "
    "quotes, no comments and no trailing commas."
)


def only(arguments: str, name: str = "read") -> OpenCall:
    """What is made of one call."""
    (call,) = opened(Reply(calls=(WantedCall(name, arguments),)), 1, 64, ())
    return call


# --- the calls of a reply -------------------------------------------------------------------


@given(st.lists(ANY_CALL, max_size=6), st.integers(1, 90_000_000), st.integers(1, 4))
@example([WantedCall("x", '{"a": ' * 5_000)], 1, 4)
@example([WantedCall("x", '{"a": 1e999}')], 1, 4)
@example([WantedCall("x", '{"a": ' + "9" * 5_000 + "}")], 1, 4)
@example([WantedCall("\ud83d\ude00" * 200, '{"\\ud800": "\\udc00"}')], 1, 4)
def test_hostile_calls_become_calls_that_every_server_takes(
    wanted: list[WantedCall], first: int, most: int
) -> None:
    calls = opened(Reply(calls=tuple(wanted)), first, most, ())

    assert len(calls) == min(len(wanted), most)
    assert len({each.call.id for each in calls}) == len(calls)
    for each in calls:
        assert re.fullmatch(r"[a-z0-9]{9}", each.call.id)
        assert 1 <= len(each.call.name) <= NAME_CAP
        assert each.call.name == each.call.name.strip() != ""
        assert isinstance(json.loads(each.call.arguments, parse_constant=lambda _: 1 / 0), dict)
        (each.call.name + each.call.arguments + each.problem).encode()


@given(ANY_TEXT)
def test_a_name_that_a_model_invents_is_one_printable_word(name: str) -> None:
    assert re.search(r"[\s\x00-\x1f\x7f-\x9f]", only("{}", name).call.name) is None


@pytest.mark.parametrize("arguments", ["", "  ", "\n", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    assert (only(arguments).call, only(arguments).problem) == (
        ToolCall("c00000001", "read", "{}"),
        "",
    )


@pytest.mark.parametrize(
    "arguments",
    ["null", "[]", '"a"', "3", "{'a': 1}", '{"a": 1,}', '{"a": NaN}', '{"a": 1e999}', "{" * 99],
)
def test_arguments_that_are_no_json_object_are_told_to_the_model_and_kept_out(
    arguments: str,
) -> None:
    call = only(arguments)

    assert (call.call, call.problem) == (ToolCall("c00000001", "read", "{}"), NOT_JSON)


def test_of_a_reply_that_was_cut_off_no_call_is_run() -> None:
    reply = Reply(calls=(WantedCall("read", '{"index": 7}'),), finish=Finish.LENGTH)

    (call,) = opened(reply, 1, 64, ())

    assert call.problem.startswith("Not run: your reply was cut off at the output limit")


def test_of_too_many_calls_the_first_are_taken() -> None:
    wanted = tuple(WantedCall("read", f'{{"n": {number}}}') for number in range(5))

    assert [each.call for each in opened(Reply(calls=wanted), 7, 2, ())] == [
        ToolCall("c00000007", "read", '{"n":0}'),
        ToolCall("c00000008", "read", '{"n":1}'),
    ]


# --- fingerprints ---------------------------------------------------------------------------


def reordered(value: object) -> object:
    """The same JSON with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(each) for each in value] if isinstance(value, list) else value


def test_equal_calls_with_their_keys_in_another_order_are_the_same_call() -> None:
    assert only('{"a": 1, "b": 2}').fingerprint == only('{ "b":2,"a":1 }').fingerprint


def test_equal_calls_with_nested_keys_in_another_order_are_the_same_call() -> None:
    one, other = (
        '{"f": {"a": 1, "b": [{"c": 2, "d": 3}]}}',
        '{"f": {"b": [{"d": 3, "c": 2}], "a": 1}}',
    )

    assert only(one).fingerprint == only(other).fingerprint


@given(ANY_OBJECT)
def test_no_order_of_keys_hides_a_repeat(arguments: dict[str, object]) -> None:
    one, other = only(json.dumps(arguments)), only(json.dumps(reordered(arguments), indent=1))

    assert one.problem or one.fingerprint == other.fingerprint


def test_other_names_other_values_and_other_orders_in_a_list_are_other_calls() -> None:
    prints = [
        only('{"a": [1, 2]}').fingerprint,
        only('{"a": [2, 1]}').fingerprint,
        only('{"a": ["1", 2]}').fingerprint,
        only('{"b": [1, 2]}').fingerprint,
        only('{"a": [1, 2]}', name="write").fingerprint,
        only('{"a": [1, 2').fingerprint,
        only('{"a": [1, 2,').fingerprint,
    ]

    assert len(set(prints)) == len(prints)


# --- a round --------------------------------------------------------------------------------


def test_a_round_closes_with_the_reply_and_its_results_in_order() -> None:
    reply = Reply(text="I look.", calls=(WantedCall("read", '{"n":1}'),) * 3)
    first, second = opened(reply, 1, 2, ())
    results = ToolMessage("c00000001", "read", "one"), ToolMessage("c00000002", "read", "two")
    calls = replace(first, result=results[0]), replace(second, result=results[1])

    entries = list(closed(reply, calls, Caps()))

    assert [entry.message for entry in entries] == [
        AssistantMessage("I look.", (first.call, second.call)),
        *results,
        Note(
            "Only the first 2 of your 3 calls were taken. Make fewer calls at once; make the "
            "others again if you still need them."
        ),
    ]
    assert [entry.size for entry in entries] == [size_of(entry.message) for entry in entries]


def test_a_round_with_a_call_that_has_no_result_cannot_be_closed() -> None:
    with pytest.raises(ValueError, match="c00000001 has no result"):
        list(closed(Reply(), (only("{}"),), Caps()))


# --- what the user said ---------------------------------------------------------------------


@given(st.lists(st.tuples(ANY_TEXT, st.booleans()), max_size=6))
def test_the_task_and_the_latest_word_are_pinned_where_they_stand(
    words: list[tuple[str, bool]],
) -> None:
    history, pinned = History(), list[Spoken]()
    for place, (text, begins_run) in enumerate(words):
        history = history.hearing(text, Caps(), 1, begins_run=begins_run)
        spoken = Spoken(clean(text), len(clean(text)), place)
        pinned = [spoken] if begins_run else [*pinned[:1], spoken]

    assert history.spoken == tuple(pinned)
    assert [entry.message for entry in history.body] == [UserMessage(clean(t)) for t, _ in words]


@given(st.lists(ANY_TEXT, min_size=1, max_size=6), st.data())
def test_the_size_of_a_history_is_that_of_its_entries_also_after_one_was_replaced(
    texts: list[str], data: st.DataObject
) -> None:
    history = History().saying(*(Note(clean(text)) for text in texts))
    place = data.draw(st.integers(0, len(texts) - 1))
    note = Note("shorter")
    history = history.replacing({place: Entry(note, size_of(note))})

    assert history.size == sum((entry.size for entry in history.body), Size())
    assert history.body[place].message == note


# --- clean ----------------------------------------------------------------------------------


@given(ANY_TEXT)
def test_a_clean_text_can_be_sent_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)

    cleaned.encode()
    assert "\0" not in cleaned
    assert clean(cleaned) == cleaned


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_what_is_clean_is_not_touched(text: str) -> None:
    assert clean(text) == text


def test_two_halves_of_a_character_become_it_and_a_lonely_half_a_mark() -> None:
    assert clean("a\ud83d\ude00b\ud83dc\0") == "a\U0001f600b\ufffdc\ufffd"


# --- what never leaves the window -----------------------------------------------------------

READ = ToolSpec(name="read", mutates=False)


def long(call: ToolCall) -> str:
    return f"{call.arguments} and so on, word for word. " * 300


def small(window: int = 8_192, *tools: ToolSpec) -> Settings:
    return Settings.for_window(window, system="You are an agent.", tools=tools or (READ,))


def reads(count: int, prefix: str = "f") -> list[Says]:
    return [calls("read", path=f"/in/{prefix}{number}.txt") for number in range(count)]


def said_by_user(request: Request) -> list[str]:
    return [m.text for m in request.messages if isinstance(m, UserMessage)]


def text_of(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)


def test_the_task_and_the_latest_word_are_in_every_request_once() -> None:
    played = Played([*reads(12)], {"read": long}).user("the task", small())
    played.only(UserSpoke("no, the other folder", played.tick()))
    played.script += [*reads(13, "g"), says("done")]
    played.happens(ModelReplied(13, Reply(calls=(wants("read", path="z"),)), played.tick()))

    said = [said_by_user(request) for request in played.requests]
    assert said == [["the task"]] * 13 + [["the task", "no, the other folder"]] * 14
    assert [e.message for e in played.requests[-1].head if isinstance(e.message, UserMessage)] == [
        UserMessage("the task"),
        UserMessage("no, the other folder"),
    ]


def test_a_pinned_fact_is_in_every_request_after_it() -> None:
    played = Played([], {"read": long}).user("work", small())
    played.only(Pinned("plan", "first /in, then /out", played.tick()))
    played.script += [*reads(25), says("done")]
    played.happens(ModelReplied(1, Reply(calls=(wants("read", path="z"),)), played.tick()))

    assert any(isinstance(event, Evicted) and event.dropped for event in played.events)
    assert all("first /in, then /out" in text_of(request) for request in played.requests[1:])


def test_a_fact_that_was_pinned_before_the_first_run_has_a_cap_too() -> None:
    played = Played([says("hello")], {})
    played.only(Pinned("plan", "word " * 60_000, played.tick()))

    assert played.user("hello", small(32_768)).stopped.text == "hello"


# --- two incidents, played again ------------------------------------------------------------

RULES = "You MUST call get_workspace_rules ONCE at the very beginning of the session."
TASK = "Put the new opening hours on every page."


class Forgetful(Played):
    """The model of the incident: without the user's message a session seems to begin."""

    page = 0

    def perform(self, effect: Effect) -> list[Effect]:
        if isinstance(effect, CallModel):
            new = TASK not in said_by_user(effect.request) or not self.requests
            self.page += not new
            page = calls("get_file_content", path=f"/pages/{self.page}.html")
            done = says("All pages have the new hours.")
            self.script = [
                calls("get_workspace_rules") if new else page if self.page < 39 else done
            ]
        return super().perform(effect)


def test_the_incident_of_75_a_session_does_not_begin_again_when_its_window_is_full() -> None:
    names = ("get_workspace_rules", "get_file_content")
    tools = tuple(ToolSpec(name=name, mutates=False) for name in names)
    page = "<section class='hours'>Mo-Fr 9:00</section>\n" * 140
    played = Forgetful(
        [], {names[0]: "Be kind.", names[1]: lambda call: (call.arguments + page)[:6_000]}
    )
    played.user(TASK, Settings.for_window(50_000, system=RULES, tools=tools))

    called = [
        call.name for e in played.events if isinstance(e, ModelReplied) for call in e.reply.calls
    ]
    shown = sum(len(e.text) for e in played.events if isinstance(e, ToolFinished))
    assert shown >= 228_000
    assert called == [names[0], *[names[1]] * 38]
    assert all(said_by_user(request) == [TASK] for request in played.requests)
    assert played.stopped.reason is StopReason.ANSWERED


def test_the_ocr_of_adr_007_every_result_is_cut_for_the_model_and_whole_in_the_log() -> None:
    page = ("Blue Bottle Coffee 12.50 " * 1_400)[:32_613]
    ocr = ToolSpec(name="ocr", mutates=False)
    script = [*(calls("ocr", path=f"/in/{n}.png") for n in range(14)), says("done")]
    played = play("read the receipts", script, {"ocr": page}, Settings(tools=(ocr,)))

    budget = Budget()
    asked = [event for event in played.events if isinstance(event, ModelAsked)]
    newest = [list(request.messages)[-1].text for request in played.requests[1:]]
    cut = f"{page[:6_000]}\n[... truncated: showing first 6000 of 32613 chars]"
    assert all(event.expected + budget.output <= budget.window for event in asked)
    assert newest == [cut] * 14
    assert [e.text for e in played.events if isinstance(e, ToolFinished)] == [page] * 14
    assert (played.stopped.text, len(played.requests)) == ("done", 15)
