"""Sessions that travel as files."""

import json
from typing import Any

import pytest

from holdfast.core.events import Attached, Event, FileKept, Outcome, ToolFinished
from holdfast.core.machine import replay
from holdfast.core.messages import AssistantMessage, ToolMessage, UserMessage
from holdfast.core.state import State
from holdfast.journal import buddy_file, exchange
from holdfast.journal.exchange import BadFile
from holdfast.journal.memory import MemoryJournal
from holdfast.testing.journal_contract import events_of, log_of, long_log, talk, written


@pytest.mark.parametrize("seed", range(6))
async def test_a_session_comes_back_from_its_lines(seed: int) -> None:
    here, there = MemoryJournal(), MemoryJournal()
    log: list[Event] = [event for event in log_of(seed) if type(event) is not FileKept]
    session = await written(here, log, folder="/x", title="t", labels=(("a", "b"),))
    lines = await exchange.exported(here, session)
    assert all("\n" not in line and line.isascii() for line in lines)
    again = await exchange.imported(there, lines)
    assert again != session
    assert await events_of(there, again) == log
    about = await there.about(again)
    assert (about.folder, about.title, about.labels) == ("/x", "t", (("a", "b"),))
    assert (await there.open(again)).state == replay(log)


async def test_blobs_travel_with_the_events_that_name_them() -> None:
    here, there = MemoryJournal(), MemoryJournal()
    book = await here.create()
    image = await book.keep(b"\x89PNG")
    log: list[Event] = [
        *talk("look", "yes"),
        ToolFinished("c9", Outcome.DONE, "", 5.0, (Attached("image/png", 4, image),)),
        FileKept("c9", "/a", image, 6.0),
    ]
    book.append(log, replay(log))
    lines = await exchange.exported(here, book.id)
    again = await exchange.imported(there, lines)
    assert await events_of(there, again) == log
    assert await there.blob(image) == b"\x89PNG"


HEADER = '{"format": "holdfast session", "version": 1}'
EVENT = '{"seq": 1, "event": {"k": "CancelAsked", "v": 1, "at": 1}}'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "line 1: the file is empty"),
        (["{"], "line 1: no JSON"),
        (["[]"], "line 1: not an object"),
        (['{"format": "x"}'], "line 1: not the first line"),
        (['{"format": "holdfast session", "version": 2}'], "line 1: version 2"),
        (['{"format": "holdfast session", "version": 1, "title": 3}'], "line 1: title"),
        (['{"format": "holdfast session", "version": 1, "labels": [3]}'], "line 1: labels"),
        ([HEADER, "[" * 100_000], "line 2: no JSON"),
        ([HEADER, EVENT, "", EVENT], "line 4: event 1 stands where event 2 should"),
        ([HEADER, '{"seq": 1, "event": {"k": "Dreamt", "v": 1}}'], "line 2: 'Dreamt'"),
        ([HEADER, '{"seq": 1, "event": 7}'], "line 2: an event was expected"),
        ([HEADER, EVENT.replace('"at": 1', '"at": NaN')], "line 2: no JSON: NaN is no number"),
        (
            [HEADER, '{"seq": 1, "event": {"k": "UserSpoke", "v": 1, "text": "", "at": 1}}'],
            "line 2: the event cannot follow those before it",
        ),
        ([HEADER, '{"blob": "x", "content": "####"}'], "line 2: .* base64"),
        ([HEADER, '{"blob": "x", "content": "aGk="}'], "line 2: .*another content"),
        (
            [HEADER, '{"seq": 1, "event": {"k": "FileKept", "v": 1, "call_id": "", "path": "",'
             ' "blob": "ab", "at": 1}}'],
            "line 2: the blob ab .* on no line before",
        ),
    ],
)  # fmt: skip
async def test_a_hostile_file_is_refused_with_its_line(lines: list[str], said: str) -> None:
    journal = MemoryJournal()
    with pytest.raises(BadFile, match=said):
        await exchange.imported(journal, lines)
    assert await journal.sessions() == []


# --- buddy ----------------------------------------------------------------------------------

BUDDY: dict[str, Any] = {
    "version": 1,
    "id": "ab12-cd34-ef56-0789",
    "updated_at_millis": 1_771_000_000_000,
    "state": {
        "messages": [
            {"role": "system", "content": "You are buddy."},
            {"role": "user", "content": "What is in a.txt?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "call_9",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path":"a.txt"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_9", "content": "hello"},
            {"role": "assistant", "content": "It says hello."},
        ],
        "tracker": {"context_limit": 32768, "total_prompt_tokens": 10},
    },
}


def said_in(state: State) -> list[tuple[str, str]]:
    roles = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool"}
    return [
        (roles[type(entry.message)], entry.message.text)
        for entry in state.history.body
        if type(entry.message) in roles
    ]


async def test_a_session_of_buddy_goes_on_here() -> None:
    journal = MemoryJournal()
    carried = await buddy_file.imported(journal, json.dumps(BUDDY))
    state = (await journal.open(carried.content)).state
    assert carried.left_out == ()
    assert said_in(state) == [
        ("user", "What is in a.txt?"),
        ("assistant", ""),
        ("tool", "hello"),
        ("assistant", "It says hello."),
    ]
    assert state.run is not None
    assert state.run.stopped is not None
    assert (await journal.about(carried.content)).title == "What is in a.txt?"


async def test_a_session_of_buddy_comes_out_as_it_went_in() -> None:
    journal = MemoryJournal()
    carried = await buddy_file.imported(journal, json.dumps(BUDDY))
    out = json.loads((await buddy_file.exported(journal, carried.content)).content)
    messages = json.loads(json.dumps(BUDDY["state"]["messages"]).replace("call_9", "c00000001"))
    assert out["state"]["messages"] == messages
    assert (out["version"], out["state"]["tracker"]["context_limit"]) == (1, 32768)


async def test_what_buddy_cannot_hold_is_said() -> None:
    journal = MemoryJournal()
    session = await written(journal, long_log(60))
    carried = await buddy_file.exported(journal, session)
    assert carried.left_out == ("what the harness noted: nudges, evictions, decisions, times",)
    messages = json.loads(carried.content)["state"]["messages"]
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert [m["tool_call_id"] for m in messages if m["role"] == "tool"] == calls
    again = await buddy_file.imported(journal, carried.content)
    assert (await journal.about(again.content)).events > 0


@pytest.mark.parametrize("seed", range(6))
async def test_any_session_can_be_carried_to_buddy_and_back(seed: int) -> None:
    journal = MemoryJournal()
    session = await written(journal, log_of(seed))
    carried = await buddy_file.exported(journal, session)
    again = await buddy_file.imported(journal, carried.content)
    assert (await journal.open(again.content)).seq > 0


async def test_odd_messages_of_buddy_are_read_and_what_is_lost_is_said() -> None:
    odd = json.loads(json.dumps(BUDDY))
    odd["state"]["messages"] = [
        {"role": "assistant", "content": "first", "mood": "good"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url"}]},
        {"role": "user", "content": "again"},
        {"role": "system", "content": "[buddy compact summary]"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "", "content": '{"harness_timestamp": 1, "result": "r"}'},
    ]
    journal = MemoryJournal()
    carried = await buddy_file.imported(journal, json.dumps(odd))
    assert set(carried.left_out) == {
        "parts of messages that are no text",
        "fields of messages that only buddy knows",
    }
    assert (await journal.open(carried.content)).state.pins == (
        ("from buddy", "[buddy compact summary]"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        ("[]", "no session of buddy"),
        ('{"state": {"messages": 3}}', "no session of buddy"),
        ('{"version": 7, "state": {"messages": []}}', "version 7"),
        ('{"version": 1, "state": {"messages": [3]}}', "message 1 has no role"),
        ('{"version": 1, "updated_at_millis": "x", "state": {"messages": []}}', "a number"),
        (
            '{"version": 1, "state": {"messages": [{"role": "user", "content": "x"},'
            ' {"role": "assistant", "tool_calls": [3]}]}}',
            "no function",
        ),
    ],
)
async def test_a_file_that_is_not_buddys_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadFile, match=said):
        await buddy_file.imported(MemoryJournal(), text)
