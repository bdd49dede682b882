"""Events and states as bytes: what is written is what is read, in every version to come."""

import json
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.events import Event, ToolStarted
from holdfast.core.machine import replay
from holdfast.journal import codec
from holdfast.journal.codec import (
    KINDS,
    VERSIONS,
    Unreadable,
    decode_event,
    decode_state,
    encode_event,
    encode_state,
    event_of,
    plain_event,
)
from holdfast.journal.plain import Wrong, load
from holdfast.journal.rows import Reading, row_of
from holdfast.testing.world import World

from .values import any_event, values

GOLDEN = Path(__file__).parent / "golden"


@given(any_event)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    assert decode_event(encode_event(event)) == event
    assert load(encode_event(event)) == plain_event(event)


@given(any_event)
def test_a_row_and_its_blobs_are_the_event(event: Event) -> None:
    row = row_of(event)
    blobs = dict(row.aside)
    assert Reading(blobs.__getitem__).event(row.body, aside=bool(row.aside)) == event
    assert b"\0" not in row.body


@given(st.integers(0, 10**9))
def test_a_state_comes_back_as_it_was(seed: int) -> None:
    world = World(Random(seed))
    world.play()
    for last in (len(world.log), len(world.log) // 2):
        state = replay(world.log[:last])
        assert decode_state(encode_state(state)) == state


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_every_field_is_written_so_that_a_new_default_changes_no_old_log(kind: type) -> None:
    event = _example(kind)
    assert list(plain_event(event)) == ["k", "v", *(field.name for field in fields(kind))]


def _example(kind: type) -> Any:
    found: list[Any] = []

    @given(values(kind))
    def first(event: Any) -> None:
        found.append(event)

    first()
    return found[0]


# --- versions -------------------------------------------------------------------------------


def test_there_is_a_golden_log_of_every_version_of_every_kind() -> None:
    seen = {
        (plain["k"], plain["v"])
        for path in GOLDEN.glob("events-*.jsonl")
        for plain in map(json.loads, path.read_text().splitlines())
    }
    assert seen == {(kind, version) for kind in KINDS for version in range(1, VERSIONS[kind] + 1)}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("events-*.jsonl")), ids=lambda path: path.stem)
def test_a_golden_log_stays_readable(path: Path) -> None:
    """Its events never change. If one cannot be read any more, write an upcaster."""
    for line in path.read_text().splitlines():
        event = event_of(json.loads(line))
        written = plain_event(event)
        for name, value in json.loads(line).items():
            if name not in ("k", "v"):
                assert includes(written[name], value)


def includes(new: Any, old: Any) -> bool:
    """Everything that stood in the old form stands in the new one."""
    if isinstance(old, dict):
        return all(name in new and includes(new[name], value) for name, value in old.items())
    if isinstance(old, list):
        return len(new) == len(old) and all(map(includes, new, old))
    return bool(new == old)


def test_fields_that_are_not_known_are_passed_over() -> None:
    plain = plain_event(ToolStarted("c1", 2.0)) | {"mood": "good"}
    assert event_of(plain) == ToolStarted("c1", 2.0)


@pytest.mark.parametrize(
    "plain", [{"k": "ToolDreamt", "v": 1}, {"k": "ToolStarted", "v": 2, "call_id": "", "at": 0}]
)
def test_what_a_newer_version_wrote_is_refused_and_not_left_out(plain: dict[str, Any]) -> None:
    with pytest.raises(Unreadable, match="newer Holdfast"):
        event_of(plain)


def test_an_old_version_is_brought_up_to_date_step_by_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(codec.UPCASTERS, ("ToolBegan", 1), lambda old: old | {"v": 2, "at": 5.0})
    monkeypatch.setitem(
        codec.UPCASTERS,
        ("ToolBegan", 2),
        lambda old: {"k": "ToolStarted", "v": 1, "call_id": old["id"], "at": old["at"]},
    )
    assert event_of({"k": "ToolBegan", "v": 1, "id": "c1"}) == ToolStarted("c1", 5.0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"3", "an event was expected"),
        (b"{}", "a kind and a version"),
        (b'{"k": ["ToolStarted"], "v": 1}', "a kind and a version"),
        (b'{"k": "ToolStarted", "v": true}', "a kind and a version"),
        (b'{"k": "ToolStarted", "v": 1}', "ToolStarted: .*call_id"),
        (b'{"k": "ToolStarted", "v": 1, "call_id": 3, "at": 1}', "ToolStarted.call_id: a text"),
        (b'{"k": "ToolStarted", "v": 1, "call_id": "", "at": "1"}', "ToolStarted.at: a number"),
        (b'{"k": "TimeRanOut", "v": 1, "run": 1.5, "at": 1}', "a whole number"),
        (b'{"k": "Warned", "v": 1, "about": "sex", "text": ""}', "no About is called 'sex'"),
        (b'{"k": "ToolsFound", "v": 1, "names": "ab", "at": 1}', "a list was expected"),
    ],
)
def test_what_is_no_event_is_said_with_its_place(content: bytes, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        decode_event(content)


@given(st.binary(max_size=40))
def test_no_bytes_do_more_harm_than_a_sentence(content: bytes) -> None:
    with pytest.raises(Unreadable):
        decode_event(content)


@given(any_event, st.data())
def test_a_damaged_event_is_an_event_or_a_sentence(event: Event, data: st.DataObject) -> None:
    content = bytearray(encode_event(event))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Unreadable):
        decode_event(bytes(content))


def test_a_damaged_state_is_recognised() -> None:
    for content in (b"{", b"[]", b'{"history": 3}'):
        with pytest.raises(Wrong):
            decode_state(content)
