"""The judge: a request that pleases the strictest server, and one for each way not to."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.testing.script import says
from holdfast.testing.server import Kind, ModelServer
from holdfast.testing.server.answers import Answers
from holdfast.testing.server.http import Request
from tests.testing.client import CHAT, CLOCK, GOOD, MESSAGES, OLLAMA, ask

USER = {"role": "user", "content": "Hello?"}
SYSTEM = {"role": "system", "content": "Be short."}
SAID = {"role": "assistant", "content": "Hello."}


def call(id_: Any = "c1", name: Any = "clock", arguments: Any = "{}", **more: Any) -> Any:
    function = {"name": name, "arguments": arguments}
    return {"id": id_, "type": "function", "function": function, **more}


def asks(*calls: Any, content: Any = "") -> Any:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(id_: Any = "c1", content: Any = "12:00") -> Any:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def mind_of(kind: Kind) -> Answers:
    """A server without its sockets: it is quicker to ask this one."""
    return Answers(
        turns=[],
        then=says("Hello."),
        kind=kind,
        window=4096,
        model="test-model",
        key=None,
        tools=True,
        strict=True,
        refuse=False,
    )


def judged(
    *, kind: Kind = Kind.LLAMA_CPP, path: str = CHAT, body: object = None, **fields: Any
) -> list[str]:
    """The complaints about a good request with these fields."""
    mind = mind_of(kind)
    raw = json.dumps({**GOOD, **fields} if body is None else body).encode()
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    return list(mind.received(Request("POST", path, headers, raw)).complaints)


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [SYSTEM, USER],
        [USER, SAID, USER],
        [USER, asks(call()), result()],
        [USER, asks(call()), result(), USER],
        [USER, asks(call()), result(), SAID, USER],
        [USER, asks(call("a"), call("b"), content="Both."), result("a"), result("b")],
        [USER, asks(call("a")), result("a"), asks(call("b")), result("b", "")],
        [{"role": "user", "content": [{"type": "text", "text": "Hello?"}]}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}],
    ],
)
@pytest.mark.parametrize("kind", [Kind.LLAMA_CPP, Kind.OPENAI])
def test_a_good_history_pleases_the_judge(messages: list[Any], kind: Kind) -> None:
    assert judged(messages=messages, tools=[CLOCK], kind=kind) == []


@pytest.mark.parametrize(
    ("messages", "complaints"),
    [
        # who speaks when
        ([], ["The field messages is missing or empty.", "There is no message of the user."]),
        ([SYSTEM], ["There is no message of the user."]),
        ([SAID, USER], ["The user must speak first, and not the assistant."]),
        (
            [USER, SYSTEM],
            ["The system prompt must be the first message, and the only one of its role."],
        ),
        (
            [SYSTEM, SYSTEM, USER],
            ["The system prompt must be the first message, and the only one of its role."],
        ),
        ([USER, USER], ["The user speaks twice in a row, the second time in message 2."]),
        (
            [USER, SAID, SAID, USER],
            ["The assistant speaks twice in a row, the second time in message 3."],
        ),
        (
            [USER, SAID],
            ["The last message is the assistant's: some servers go on with it, others refuse."],
        ),
        ([USER, {**SAID, "role": "bot"}, USER], ["There is no role 'bot', which message 2 has."]),
        ([{"role": "user", "content": " "}], ["The user says nothing in message 1."]),
        (
            [USER, {"role": "assistant", "content": ""}, USER],
            ["The assistant says nothing and calls nothing in message 2."],
        ),
        # calls and results
        ([USER, asks(call())], ["The call 'c1' of 'clock' has no result at the end."]),
        (
            [USER, asks(call()), USER],
            ["The call 'c1' of 'clock' has no result before message 3."],
        ),
        (
            [USER, asks(call("a"), call("b")), result("a")],
            ["The call 'b' of 'clock' has no result at the end."],
        ),
        (
            [USER, asks(call("a"), call("b")), result("b"), result("a")],
            ["The result in message 3 comes before that of 'a', out of order."],
        ),
        (
            [USER, asks(call()), result(), result()],
            ["The result in message 4 answers no call that is open."],
        ),
        (
            [USER, asks(call()), result("c2")],
            [
                "The result in message 3 is for the call 'c2', which is not open.",
                "The call 'c1' of 'clock' has no result at the end.",
            ],
        ),
        ([USER, result()], ["The result in message 2 answers no call that is open."]),
        (
            [USER, asks(call()), result(), asks(call()), result()],
            ["The id 'c1' is given to two calls, again in message 4."],
        ),
        (
            [USER, asks(call("")), result("")],
            ["The id '' of a call in message 2 is not [A-Za-z0-9_-]{1,40}."],
        ),
        (
            [USER, asks(call("x" * 41)), result("x" * 41)],
            [f"The id '{'x' * 41}' of a call in message 2 is not [A-Za-z0-9_-]{{1,40}}."],
        ),
        (
            [USER, asks(call(name="my clock")), result()],
            ["The name 'my clock' of a call in message 2 is not [A-Za-z0-9_-]{1,64}."],
        ),
        (
            [USER, asks(call(arguments='{"a": ')), result()],
            ["""The arguments of a call in message 2 are not a JSON object: '{"a": '."""],
        ),
        (
            [USER, asks(call(arguments="[]")), result()],
            ["The arguments of a call in message 2 are not a JSON object: '[]'."],
        ),
        (
            [USER, asks(call(arguments={})), result()],
            ["The arguments of a call in message 2 must not be an object."],
        ),
        (
            [USER, asks(call(type="tool")), result()],
            ["A call in message 2 is not of the type function."],
        ),
        (
            [USER, {**SAID, "tool_calls": []}, USER],
            ["The tool_calls of message 2 must be a list with calls in it, or be left out."],
        ),
        # content
        (
            [USER, asks(call(), content=None), result()],
            ['The content of message 2 is null, which some servers refuse: send "".'],
        ),
        (
            [{"role": "user"}],
            ["There is no content in message 1.", "The user says nothing in message 1."],
        ),
        (
            [{"role": "user", "content": 5}],
            [
                "The content of message 1 must not be a number.",
                "The user says nothing in message 1.",
            ],
        ),
        (
            [{"role": "user", "content": [{"text": "Hello?"}]}],
            ["A part of the content of message 1 has no type."],
        ),
        (["Hello?", USER], ["Message 1 is a text, and not an object."]),
        (
            [{"role": "user", "content": "a\0b"}],
            ["There is a NUL in a text."],
        ),
        (
            [{"role": "user", "content": "a\ud83db"}],
            ["There is half a surrogate pair in a text."],
        ),
    ],
)
def test_a_bad_history_gets_its_complaint(messages: list[Any], complaints: list[str]) -> None:
    assert judged(messages=messages) == complaints


@pytest.mark.parametrize(
    ("fields", "complaints"),
    [
        ({"tools": []}, ["The list of tools is empty: leave it out."]),
        ({"tool_choice": "auto"}, ["There is a tool_choice, and there are no tools."]),
        ({"tools": [CLOCK, CLOCK]}, ["More than one tool is named 'clock'."] * 2),
        (
            {"tools": [{"type": "function", "function": {"name": "a b", "parameters": {}}}]},
            [
                "The name 'a b' of a tool is not [A-Za-z0-9_-]{1,64}.",
                "The schema of the tool 'a b' is not one of an object.",
            ],
        ),
        (
            {"tools": [CLOCK["function"]]},
            [
                "A tool is not of the type function, with a function in it.",
                "The name None of a tool is not [A-Za-z0-9_-]{1,64}.",
                "The schema of the tool None is not one of an object.",
            ],
        ),
        (
            {"max_tokens": None},
            ["The field max_tokens must not be null."],
        ),
        ({"max_tokens": 0}, ["The answer may take 0 tokens, which is no number above 0."]),
        ({"max_tokens": -1}, ["The answer may take -1 tokens, which is no number above 0."]),
        (
            {"max_tokens": 5000},
            [
                "The request has 11 tokens and leaves 5000 for the answer, which is more than the "
                "window of 4096."
            ],
        ),
        ({"model": ""}, ["The field model is missing or empty."]),
        ({"temperature": "hot"}, ["The field temperature must not be a text."]),
        ({"temperature": True}, ["The field temperature must not be a boolean."]),
        ({"stream": "yes"}, ["The field stream must not be a text."]),
        (
            {"stream_options": {"include_usage": True}},
            ["There are stream_options, and no stream is asked for."],
        ),
        ({"temperature": float("nan")}, ["NaN is not JSON."]),
    ],
)
def test_a_bad_field_gets_its_complaint(fields: dict[str, Any], complaints: list[str]) -> None:
    assert judged(**fields) == complaints


def test_how_long_the_answer_may_be_can_be_said_in_the_newer_way() -> None:
    body = {"model": "test-model", "messages": [USER], "max_completion_tokens": 100}
    assert judged(body=body) == []
    assert judged(body={**body, "max_completion_tokens": 0}) == [
        "The answer may take 0 tokens, which is no number above 0."
    ]


def test_only_anthropic_must_be_told_how_long_the_answer_may_be() -> None:
    body = {"model": "test-model", "messages": [USER]}
    assert judged(body=body, kind=Kind.OPENAI) == []
    assert judged(body=body, kind=Kind.OLLAMA, path=OLLAMA) == []
    assert judged(body=body, kind=Kind.ANTHROPIC, path=MESSAGES) == [
        "It is not said how many tokens the answer may take."
    ]


def test_only_servers_that_refuse_an_unknown_field_complain_of_it() -> None:
    assert judged(cache_prompt=True, kind=Kind.LLAMA_CPP) == []
    assert judged(cache_prompt=True, kind=Kind.OPENAI) == [
        "There is no field cache_prompt in the API of this server."
    ]


def test_what_is_no_object_is_complained_of() -> None:
    bodies: list[object] = [[], "text", 5]
    for body in bodies:
        assert judged(body=body) == ["The body is not a JSON object."]


def test_the_type_of_the_content_must_be_said() -> None:
    with ModelServer(then=says("Hello.")) as server:
        ask(server, headers={"Content-Type": "text/plain"})

    assert server.complaints == ["The content type is 'text/plain', and not application/json."]


def test_ollama_matches_results_by_their_order_and_wants_objects() -> None:
    def native(*messages: Any) -> list[str]:
        body = {"model": "test-model", "messages": messages, "options": {"num_predict": 9}}
        return judged(kind=Kind.OLLAMA, path=OLLAMA, body=body)

    made = {"function": {"name": "clock", "arguments": {}}}
    answer = {"role": "tool", "tool_name": "clock", "content": "12:00"}
    assert native(USER, asks(made, made), answer, answer) == []
    assert native(USER, asks(made), answer, answer) == [
        "The result in message 4 answers no call that is open."
    ]
    assert native(USER, asks(call(arguments="{}")), answer) == [
        "The arguments of a call in message 2 must not be a text."
    ]


def test_anthropic_wants_results_first_and_no_empty_text() -> None:
    def messages(*given: Any) -> list[str]:
        return judged(kind=Kind.ANTHROPIC, path=MESSAGES, messages=list(given))

    use = {"type": "tool_use", "id": "t1", "name": "clock", "input": {}}
    wants = {"role": "assistant", "content": [use]}
    back = {"type": "tool_result", "tool_use_id": "t1", "content": "12:00"}
    text = {"type": "text", "text": "Well?"}
    assert messages(USER, wants, {"role": "user", "content": [back, text]}) == []
    assert messages(USER, wants, {"role": "user", "content": [text, back]}) == [
        "The call 't1' of 'clock' has no result before message 3.",
        "The result in message 3 answers no call that is open.",
    ]
    image = {"type": "image", "source": {"type": "url", "url": "data:,"}}
    assert messages({"role": "user", "content": [image]}) == []
    empty = {"type": "text", "text": ""}
    assert messages(USER, SAID, {"role": "user", "content": [empty, text]}) == [
        "A text in message 3 is empty, which Anthropic refuses."
    ]


def test_anthropic_wants_to_know_the_version() -> None:
    request = Request(
        "POST", MESSAGES, {"content-type": "application/json"}, json.dumps(GOOD).encode()
    )

    assert mind_of(Kind.ANTHROPIC).received(request).complaints == (
        "The header anthropic-version is missing.",
    )


# --- what becomes of complaints ------------------------------------------------------------------


def test_complaints_do_not_change_the_answer() -> None:
    with ModelServer(says("Hello.")) as server:
        answer = ask(server, max_tokens=0, tools=[])

    assert answer.json["choices"][0]["message"]["content"] == "Hello."
    assert server.complaints == list(server.received[0].complaints)
    assert len(server.complaints) == 2


def test_a_server_that_refuses_answers_with_the_complaint_and_keeps_its_turn() -> None:
    with ModelServer(says("Hello."), refuse=True) as server:
        refused = ask(server, tools=[])
        taken = ask(server)

    assert (refused.status, refused.json["error"]["message"]) == (
        400,
        "The list of tools is empty: leave it out.",
    )
    assert taken.status == 200


def test_the_judge_can_be_sent_home() -> None:
    with ModelServer(says("Hello."), strict=False) as server:
        ask(server, tools=[])

    assert server.complaints == []


# --- whatever comes ------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["role", "content", "tool_calls", "user", "tool", "assistant", "function", "id", "type", "text"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(), inner, max_size=5)
    ),
    max_leaves=20,
)
FIELDS = st.sampled_from(
    ["messages", "tools", "model", "stream", "max_tokens", "options", "system", "tool_choice"]
)


@given(
    body=st.dictionaries(FIELDS | st.text(), VALUES, max_size=6) | VALUES,
    path=st.sampled_from([CHAT, OLLAMA, MESSAGES, "/tokenize", "/apply-template", "/api/show"]),
    kind=st.sampled_from(Kind),
)
def test_whatever_a_client_sends_is_judged_and_answered(body: Any, path: str, kind: Kind) -> None:
    mind = mind_of(kind)
    raw = json.dumps(body).encode()
    received = mind.received(Request("POST", path, {}, raw))
    answer = mind.answer(received)

    assert answer.status in (200, 400, 404, 500)
    assert mind.mistake is None
    assert all(each.endswith(".") for each in received.complaints)


DEEP = b'{"tools": ' + b"[" * 200 + b"]" * 200 + b"}"


@pytest.mark.parametrize("raw", [b"[" * 100_000, DEEP, b"\xff\xfe", b'{"messages":', b""])
def test_what_is_no_json_is_answered_too(raw: bytes) -> None:
    mind = mind_of(Kind.OPENAI)
    received = mind.received(Request("POST", CHAT, {}, raw))

    assert received.complaints == ("The body is not a JSON object.",)
    assert mind.answer(received).status == 400
