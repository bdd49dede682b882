"""Whatever a tool returns becomes a text that can be sent, and bytes that can be kept."""

import json
import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.base import Binary, Output
from holdfast.tools.results import output_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(12_292)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    inner: list["Point"] = field(default_factory=list)


class Shop(pydantic.BaseModel):
    name: str
    opened: date


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        (None, ""),
        (0, "0"),
        (True, "true"),
        (1.5, "1.5"),
        (Colour.RED, "red"),
        (Level.HIGH, "3"),
        ({"a": [1, None, "ü"]}, '{"a": [1, null, "ü"]}'),
        (OrderedDict(b=1, a=2), '{"b": 1, "a": 2}'),
        (MappingProxyType({1: 2, None: 3, (1, 2): 4}), '{"1": 2, "null": 3, "[1, 2]": 4}'),
        ({1: "a", "1": "b"}, '[[1, "a"], ["1", "b"]]'),
        ((1, (2,)), "[1, [2]]"),
        (Pair(1, 2), '{"left": 1, "right": 2}'),
        ({3, 1, 2}, "[1, 2, 3]"),
        (frozenset("gfedcba"), '["a", "b", "c", "d", "e", "f", "g"]'),
        (Point(1, [Point(2)]), '{"x": 1, "inner": [{"x": 2, "inner": []}]}'),
        (Shop(name="Ana", opened=date(2026, 1, 2)), '{"name": "Ana", "opened": "2026-01-02"}'),
        ([Path("a/b"), Decimal("1.10")], '["a/b", "1.10"]'),
        (Path("a/b"), "a/b"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (timedelta(hours=1), "1:00:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ([math.nan, math.inf], '["nan", "inf"]'),
        (math.nan, "nan"),
        (b"text \xc3\xbc", "text ü"),
        (bytearray(b"text"), "text"),
        ("a\0b \ud800", "a\ufffdb \ufffd"),
        ({"\ud83d\ude00": "\ud800"}, '{"\U0001f600": "\ufffd"}'),
    ],
)  # fmt: skip
def test_a_value_becomes_the_text_it_means(value: object, text: str) -> None:
    assert output_of(value) == Output(text)


def test_a_number_too_long_to_be_written_is_described() -> None:
    assert output_of([10**5_000]).text == '["a number of 16610 bits"]'


def test_bytes_that_are_no_text_are_kept_and_mentioned() -> None:
    line = "[image/png, 12.3 KB: kept for the user; you cannot see it]"

    assert output_of(PNG) == Output(line, (Binary(PNG, "image/png"),))
    assert output_of({"picture": PNG}) == Output(
        json.dumps({"picture": line}), (Binary(PNG, "image/png"),)
    )
    assert output_of(b"a\0b").text.startswith("[application/octet-stream, 3 bytes:")


def test_a_binary_is_mentioned_by_its_name_and_only_once() -> None:
    chart = Binary(b"\1" * 2_500_000, "image/jpeg", "chart.jpg")
    line = "[chart.jpg, image/jpeg, 2.5 MB: kept for the user; you cannot see it]"

    once = output_of(Output("Drawn.", (chart,)))

    assert once == Output(f"Drawn.\n{line}", (chart,))
    assert output_of(once) == once
    assert output_of(chart) == Output(line, (chart,))


def test_a_failure_that_is_returned_is_a_failure() -> None:
    assert output_of(ValueError("no such shop")) == Output("ValueError: no such shop", failed=True)
    assert output_of(KeyError()) == Output("KeyError", failed=True)
    assert output_of(Output("no\0", failed=True)) == Output("no\ufffd", failed=True)


def test_what_contains_itself_is_written_once() -> None:
    ring: list[object] = [1]
    ring.append(ring)
    point = Point(1)
    point.inner.append(point)
    twice = [1]

    assert output_of(ring).text == '[1, "[the same again: it contains itself]"]'
    assert "contains itself" in output_of(point).text
    assert output_of([twice, twice]).text == "[[1], [1]]"


def test_what_is_nested_too_deeply_is_left_out_and_said_to_be() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    assert output_of(deep).text.count("[") == 51
    assert "nested deeper than 50 levels: left out" in output_of(deep).text
    while deep:  # so that taking it apart does not recurse either
        deep = deep[0]  # type: ignore[assignment]


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


class HostileModel:
    def model_dump(self) -> object:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        return "model"


def test_what_cannot_be_written_down_is_described_and_said_to_be() -> None:
    said = "[only a description: a object cannot be written as text]"
    assert output_of(object()).text.endswith(said)
    assert output_of(Hostile()).text.startswith("<Hostile> [only a description")
    assert (
        output_of(HostileModel()).text
        == "model [only a description: reading it raised RuntimeError]"
    )
    assert output_of([len, Point])  # functions and classes
    assert output_of("x" for _ in ()).text.startswith("<generator object")
    assert len(output_of(type("Long", (), {"__repr__": lambda _: "x" * 9_999})()).text) < 2_200


def test_fifty_megabytes_come_through_whole() -> None:
    text = "0123456789" * 5_000_000

    assert output_of(text).text == text
    assert output_of(text.encode()).text == text
    assert len(output_of([text]).text) == len(text) + 4


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.dates(),
    st.decimals(), st.uuids(), st.complex_numbers(), st.sampled_from([Colour.RED, Hostile, len]),
    st.builds(Output, st.text(), st.tuples(st.builds(Binary, st.binary()))),
)  # fmt: skip
keys = st.text() | st.integers() | st.none()
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.dictionaries(keys, inner) | st.tuples(inner, inner),
    max_leaves=12,
)


@given(anything)
def test_any_value_becomes_an_output_that_can_be_encoded_and_stays_as_it_is(value: object) -> None:
    once = output_of(value)

    once.text.encode()
    assert "\0" not in once.text
    assert output_of(once) == once
