"""The loop itself: rounds, pairs of calls and results, and what counts as an answer.

How a run is made to end is `test_endings`; how it is interrupted, `test_cancel_and_recover`.
"""

import json
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from holdfast.core.effects import CallModel, Request
from holdfast.core.events import (
    Finish,
    ModelReplied,
    Outcome,
    Reply,
    ToolFinished,
    UserSpoke,
    WantedCall,
)
from holdfast.core.limits import Limits, Settings, StopReason, Usage
from holdfast.core.messages import AssistantMessage, Message, Note, ToolMessage, UserMessage
from holdfast.core.tools import ToolSpec
from holdfast.testing.script import Played, Says, calls, play, says, several, wants
from holdfast.testing.told import shortened

FILES = {"read": lambda call: f"text of {json.loads(call.arguments)['path']}"}


def sent(request: Request) -> list[str]:
    """What a model is sent, one line a message."""
    return [shortened(line_of(message), 100) for message in request.messages]


def line_of(message: Message) -> str:
    match message:
        case UserMessage(text):
            return f"user: {text}"
        case Note(text):
            return f"note: {text}"
        case AssistantMessage(text, wanted):
            said = (f"{call.id}={call.name}{call.arguments}" for call in wanted)
            return " ".join(("model:", text, *said))
        case ToolMessage(call_id, _, text):
            return f"{call_id}: {text}"


def with_tools(*names: str, **limits: int) -> Settings:
    specs = tuple(ToolSpec(name=name, mutates=False) for name in names)
    return Settings(tools=specs, limits=replace(Limits(), **limits))


def at_work(*paths: str) -> Played:
    """A run whose model wants to read these files; none of the calls has begun."""
    played = Played([], FILES)
    played.only(UserSpoke("go", 1.0, with_tools("read")))
    wanted = tuple(wants("read", path=path) for path in paths)
    played.only(ModelReplied(1, Reply(calls=wanted), 2.0))
    return played


# rounds, and the pairs in them


def test_a_tool_result_reaches_the_model_before_it_answers() -> None:
    played = play("time?", [calls("clock"), says("It is noon.")], {"clock": "12:00"})

    assert played.told == snapshot(
        [
            "user: time?",
            "model: clock({})",
            "c00000001: 12:00",
            "model: It is noon.",
            "stopped, answered: It is noon.",
        ]
    )
    assert sent(played.requests[-1]) == snapshot(
        ["user: time?", "model: c00000001=clock{}", "c00000001: 12:00"]
    )


def test_several_calls_of_one_reply_are_answered_in_their_order() -> None:
    reply = several(wants("read", path="a"), wants("read", path="b"), text="Both of them.")

    played = play("read a and b", [reply, says("Done.")], FILES)

    assert sent(played.requests[-1]) == snapshot(
        [
            "user: read a and b",
            'model: Both of them. c00000001=read{"path":"a"} c00000002=read{"path":"b"}',
            "c00000001: text of a",
            "c00000002: text of b",
        ]
    )


def test_results_that_arrive_in_another_order_are_put_in_the_order_of_the_calls() -> None:
    played = at_work("a", "b", "c")

    for call_id in ("c00000003", "c00000001"):
        assert played.only(ToolFinished(call_id, Outcome.DONE, f"of {call_id}", 3.0)) == ()
    played.happens(ToolFinished("c00000002", Outcome.DONE, "of c00000002", 3.0))

    assert sent(played.requests[-1]) == snapshot(
        [
            "user: go",
            'model: c00000001=read{"path":"a"} c00000002=read{"path":"b"} c00000003=read{"path":"c"}',
            "c00000001: of c00000001",
            "c00000002: of c00000002",
            "c00000003: of c00000003",
        ]
    )


def test_calls_get_ids_of_our_own_whatever_the_server_calls_them() -> None:
    wanted = (
        replace(wants("read", path=str(n)), id=given) for n, given in enumerate(("x", "x", ""))
    )

    played = play("go", [several(*wanted), calls("read", path="3"), says("Done.")], FILES)

    assert [line for line in sent(played.requests[-1]) if "text of" in line] == [
        f"c0000000{number + 1}: text of {number}" for number in range(4)
    ]


def test_a_second_result_for_a_call_is_not_taken() -> None:
    played = at_work("a", "b")
    played.only(ToolFinished("c00000001", Outcome.DONE, "first", 3.0))
    before = played.state

    assert played.only(ToolFinished("c00000001", Outcome.FAILED, "second", 3.0)) == ()
    assert played.state == before


def test_a_result_for_a_call_nobody_made_changes_nothing() -> None:
    played = at_work("a")
    before = played.state

    assert played.only(ToolFinished("c00000099", Outcome.DONE, "surprise", 2.0)) == ()
    assert played.state == before


def test_a_reply_that_is_delivered_twice_is_used_once() -> None:
    played = at_work("a")
    again = Reply(calls=(wants("read", path="a"),))

    assert played.only(ModelReplied(1, again, 2.0)) == ()

    played.happens(ToolFinished("c00000001", Outcome.DONE, "text of a", 3.0))
    assert sent(played.requests[-1]) == snapshot(
        ["user: go", 'model: c00000001=read{"path":"a"}', "c00000001: text of a"]
    )


def test_a_late_reply_to_the_run_before_is_neither_used_nor_charged_to_this_one() -> None:
    played = play("one", []).cancel().user("two")

    late = ModelReplied(1, Reply(text="Answer to one."), played.tick(), Usage(completion=7))
    assert played.only(late) == ()

    assert played.state.run is not None
    assert played.state.run.stopped is None
    assert played.state.run.spent.completion == 0


# calls that cannot be run


SOME = ("files.read", "clock")


@pytest.mark.parametrize(
    ("name", "tools", "told"),
    [
        ("files.raed", SOME, "'files.raed'. Did you mean: files.read?"),
        ("zzz", SOME, "'zzz'. Some that exist: files.read, clock."),
        ("", SOME, "'unnamed'. Some that exist: files.read, clock."),
        ("read", (), "'read', and no tools are available now."),
    ],
)
def test_a_tool_that_does_not_exist_is_answered_with_those_that_do(
    name: str, tools: tuple[str, ...], told: str
) -> None:
    played = play("go", [calls(name), says("Sorry.")], settings=with_tools(*tools))

    assert played.told[2:] == [
        f"c00000001: not run: There is no tool named {told}",
        "model: Sorry.",
        "stopped, answered: Sorry.",
    ]


def test_a_tool_is_found_without_the_prefix_of_its_server() -> None:
    files = {"files.read": "text of a"}

    played = play("go", [calls("read", path="a"), says("Done.")], files, with_tools(*SOME))

    assert played.told[2:] == ["c00000001: text of a", "model: Done.", "stopped, answered: Done."]


def test_a_call_without_the_prefix_is_one_of_the_tool_all_the_same() -> None:
    tool = ToolSpec(name="docs.cite", mutates=False, keep_last=1)
    pages = {"docs.cite": lambda call: f"page {call.id} " * 60}

    script = [*(calls("cite", n=n) for n in range(2)), says("Done.")]
    played = play("go", script, pages, Settings(tools=(tool,)))

    older, newest = (m for m in played.requests[-1].messages if isinstance(m, ToolMessage))
    assert newest.text == "page c00000002 " * 60
    assert older.text.startswith("[earlier result c00000001 of 900 chars, shortened: ")


def test_a_tool_of_one_server_is_never_taken_for_that_of_another() -> None:
    """Who wants to send a mail does not want to write into a chat."""
    played = play("go", [calls("mail.send"), says("Sorry.")], settings=with_tools("chat.send"))

    assert played.told[2] == (
        "c00000001: not run: There is no tool named 'mail.send'. Did you mean: chat.send?"
    )


@pytest.mark.parametrize(
    "arguments",
    ['{"path": ""/a"}', "{'path': 'a'}", '{"path": ', "[1]", "null", "7", '{"n": NaN}', "\ud800"],
)
def test_arguments_that_are_no_json_object_are_not_run_and_leave_valid_ones_behind(
    arguments: str,
) -> None:
    reply = several(WantedCall("read", arguments), wants("read", path="b"))

    played = play("go", [reply, says("Done.")], FILES)

    assert sent(played.requests[-1]) == [
        "user: go",
        'model: c00000001=read{} c00000002=read{"path":"b"}',
        "c00000001: Not run: the arguments of 'read' were not a JSON object. Send one object with "
        "double quo…",
        "c00000002: text of b",
    ]


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    played = play("time?", [several(WantedCall("clock", arguments))], {"clock": "12:00"})

    assert sent(played.requests[-1]) == [
        "user: time?",
        "model: c00000001=clock{}",
        "c00000001: 12:00",
    ]


def test_a_call_that_the_output_limit_cut_is_never_run() -> None:
    half = several(wants("put", index=1), WantedCall("put", '{"index": 7'), finish=Finish.LENGTH)

    played = play("put 71", [half, calls("put", index=71), says("Done.")], {"put": "ok"})

    assert sent(played.requests[-1]) == snapshot(
        [
            "user: put 71",
            'model: c00000001=put{"index":1} c00000002=put{}',
            "c00000001: Not run: your reply was cut off at the output limit, so the call may be incomplete. Make…",
            "c00000002: Not run: your reply was cut off at the output limit, so the call may be incomplete. Make…",
            'model: c00000003=put{"index":71}',
            "c00000003: ok",
        ]
    )


def test_of_too_many_calls_the_first_are_run_and_the_model_is_told() -> None:
    reply = several(*(wants("read", path=name) for name in "abcde"))

    played = play("go", [reply, says("Done.")], FILES, with_tools("read", calls_per_reply=2))

    assert sent(played.requests[-1]) == snapshot(
        [
            "user: go",
            'model: c00000001=read{"path":"a"} c00000002=read{"path":"b"}',
            "c00000001: text of a",
            "c00000002: text of b",
            "note: Only the first 2 of your 5 calls were taken. Make fewer calls at once; make the others again …",
        ]
    )


def test_a_refused_reply_runs_nothing() -> None:
    """A filter stops a reply anywhere, like the output limit: its calls may be halves."""
    reply = several(wants("read", path="a"), text="I cannot", finish=Finish.REFUSED)

    played = play("go", [reply, says("Sorry.")], FILES)

    assert "c00000001: text of a" not in played.told


def test_what_could_not_be_read_beside_a_call_is_told_with_its_result() -> None:
    reply = Reply(calls=(wants("read", path="a"),), problem="The second TOOL_CALL does not end.")

    played = play("go", [Says(reply), says("Done.")], FILES)

    assert any("The second TOOL_CALL does not end." in line for line in sent(played.requests[-1]))


# answers


def test_a_silent_model_is_nudged_and_then_answers() -> None:
    script = [says(" \n"), calls("clock"), says(""), says("Noon.")]

    played = play("time?", script, {"clock": "12:00"})

    assert played.told == snapshot(
        [
            "user: time?",
            "model:",
            "nudged, silent: You returned an empty response. Please answer the user's question or call the appro…",
            "model: clock({})",
            "c00000001: 12:00",
            "model: (nothing)",
            "nudged, silent: You returned an empty response after processing 1 tool call(s). If there are more f…",
            "model: Noon.",
            "stopped, answered: Noon.",
        ]
    )


def test_a_model_that_stays_silent_is_made_to_conclude() -> None:
    played = play("hello", [says(""), says(""), says(""), says("I was unable to do it.")])

    assert played.told == snapshot(
        [
            "user: hello",
            "model: (nothing)",
            "nudged, silent: You returned an empty response. Please answer the user's question or call the appro…",
            "model: (nothing)",
            "nudged, silent: You returned an empty response. Please answer the user's question or call the appro…",
            "model: (nothing)",
            "ending: concluded: The model gave no usable reply.",
            "asked: conclude",
            "model: I was unable to do it.",
            "stopped, concluded: I was unable to do it.",
        ]
    )


def test_a_call_written_as_text_is_asked_for_again_with_what_was_wrong() -> None:
    markup = '<tool_call>{"name": "clock", "arguments": {}}</tool_call>'

    played = play("time?", [says(markup), calls("clock"), says("Noon.")], {"clock": "12:00"})

    assert sent(played.requests[1]) == snapshot(
        [
            "user: time?",
            'model: <tool_call>{"name": "clock", "arguments": {}}</tool_call>',
            "note: Your reply looks like a tool call written as text, which cannot be run and is no answer. Call…",
        ]
    )
    assert played.stopped.text == "Noon."


def test_a_reply_the_client_could_not_read_is_asked_for_again_in_its_words() -> None:
    broken = Says(Reply(text="TOOL_CALL {", problem="The JSON after TOOL_CALL does not end."))

    played = play("hello", [broken, says("Hello.")])

    assert sent(played.requests[-1]) == snapshot(
        ["user: hello", "model: TOOL_CALL {", "note: The JSON after TOOL_CALL does not end."]
    )
    assert played.stopped.text == "Hello."


@pytest.mark.parametrize(
    "error", ['{"error": {"message": "internal", "code": 500}}', "Error code: 503 - overloaded"]
)
def test_an_error_of_the_provider_is_not_taken_for_an_answer(error: str) -> None:
    played = play("hello", [says(error), says("Hello.")])

    assert played.told[2:] == snapshot(
        [
            "nudged, malformed: Your reply was an error message of the server, which is no answer.",
            "model: Hello.",
            "stopped, answered: Hello.",
        ]
    )


@pytest.mark.parametrize(
    "answer",
    [
        "<!DOCTYPE html>\n<html><body><h1>Hello</h1></body></html>",
        '```json\n{"name": "Ada", "born": 1815}\n```',
    ],
)
def test_a_page_or_a_record_that_the_user_wanted_is_an_answer(answer: str) -> None:
    played = play("Write it, and nothing else.", [says(answer)])

    assert played.stopped.text == answer


def test_an_answer_that_the_output_limit_cut_is_continued_and_joined() -> None:
    parts = [says("One, two, ", Finish.LENGTH), says("three, ", Finish.LENGTH), says("four.")]

    played = play("count", parts)

    assert played.told == snapshot(
        [
            "user: count",
            "model: One, two, [length]",
            "nudged, cut short: Your reply was cut off at the output limit. Continue exactly where it stopped, w…",
            "model: three, [length]",
            "nudged, cut short: Your reply was cut off at the output limit. Continue exactly where it stopped, w…",
            "model: four.",
            "stopped, answered: One, two, three, four.",
        ]
    )


def test_an_answer_without_end_says_that_it_has_none() -> None:
    played = play("count", [says(f"{n}, ", Finish.LENGTH) for n in range(9)])

    assert played.stopped.text == snapshot("""\
0, 1, 2, \n\
[... the reply reached the output limit]\
""")


@pytest.mark.parametrize("text", ["I cannot help with that.", ""])
def test_a_refusal_ends_the_run_as_one(text: str) -> None:
    played = play("hello", [says(text, Finish.REFUSED)])

    assert played.stopped.reason is StopReason.REFUSED
    assert played.stopped.text == (
        text or "The model or its provider refused to answer, and gave no reason."
    )


def test_reasoning_is_never_the_answer_and_never_sent_back() -> None:
    thinks = Says(Reply(reasoning="The user wants the time."))
    calls_clock = Says(Reply(reasoning="I need the clock.", calls=(wants("clock"),)))

    played = play("time?", [thinks, calls_clock, says("Noon.")], {"clock": "12:00"})

    assert sent(played.requests[-1]) == snapshot(
        [
            "user: time?",
            "note: You returned an empty response. Please answer the user's question or call the appropriate too…",
            "model: c00000001=clock{}",
            "c00000001: 12:00",
        ]
    )
    assert played.stopped.text == "Noon."


# the user, in the middle of it


def test_what_the_user_says_while_the_model_is_asked_follows_its_reply() -> None:
    played = play("time?", [])
    played.only(UserSpoke("In Lisbon, I mean.", played.tick()))
    played.script = [says("11:00 in Lisbon.")]

    played.happens(ModelReplied(1, Reply(text="Noon."), played.tick()))

    assert played.told == snapshot(
        [
            "user: time?",
            "user: In Lisbon, I mean.",
            "model: Noon.",
            "steered",
            "model: 11:00 in Lisbon.",
            "stopped, answered: 11:00 in Lisbon.",
        ]
    )
    assert sent(played.requests[-1]) == snapshot(
        ["user: time?", "model: Noon.", "user: In Lisbon, I mean."]
    )


def test_what_the_user_says_while_tools_run_follows_their_results() -> None:
    played = at_work("a")
    assert played.only(UserSpoke("Never mind, read b.", 3.0)) == ()
    assert played.only(UserSpoke("And c.", 3.5)) == ()

    played.happens(ToolFinished("c00000001", Outcome.DONE, "text of a", 4.0))

    assert sent(played.requests[-1]) == snapshot(
        [
            "user: go",
            'model: c00000001=read{"path":"a"}',
            "c00000001: text of a",
            "user: Never mind, read b. And c.",
        ]
    )


def test_an_empty_message_of_the_user_is_passed_on_as_one() -> None:
    played = play("  ", [says("What can I do for you?")])

    assert sent(played.requests[-1]) == ["user: (The user sent an empty message.)"]
    assert played.stopped.text == "What can I do for you?"


# --- who answered ---------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "reports"), [("", 1), ("another-model", 0)])
def test_only_the_model_of_the_run_teaches_how_it_counts(by: str, reports: int) -> None:
    played = Played([], {})
    (ask,) = played.only(UserSpoke("How large is a large file?", 1.0, Settings(system="Be brief.")))
    assert isinstance(ask, CallModel)
    usage = Usage(prompt=40, completion=5)

    played.only(ModelReplied(1, Reply(text="Very."), 2.0, usage, by=by, notes=("tried again",)))

    assert played.state.gauge.reports == reports
    assert played.state.run is not None
    assert played.state.run.spent.prompt == 40
    assert played.told[-2].startswith(f"{by or 'model'}: Very. (tried again)")


def test_what_a_provider_wants_back_goes_back_with_the_calls_it_came_with() -> None:
    sealed = '{"signature":"abc"}'
    script = [
        Says(Reply(calls=(wants("read", path="a"),), owed=sealed)),
        Says(Reply(calls=(wants("read", path="b"),), owed="x" * 1_000_000)),
        Says(Reply(text="Done.", owed=sealed)),
    ]

    played = play("go", script, FILES).user("and now?")

    replies = [each for each in played.requests[-1].messages if isinstance(each, AssistantMessage)]
    assert [reply.owed for reply in replies] == [sealed, "", ""]
