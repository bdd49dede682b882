"""Events out of bytes, however the bytes are cut."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.events import Failure
from holdfast.models.sse import Event, Events, KeepAlive, TooLong, Unfinished

PIECES = st.sampled_from(
    [b"data", b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"event: e", b"id", b"retry: 5", b"\0"]
    + [b"\xef\xbb\xbf", b"\xe2", b"\x82", b"\xac", b"\xff", b"{", b"data: x", b": ping"]
)
STREAMS = st.one_of(st.binary(max_size=60), st.lists(PIECES, max_size=30).map(b"".join))
Read = tuple[list[Event | KeepAlive], Unfinished | None]


def read(*pieces: bytes, largest: int = 1000) -> Read:
    events = Events(largest)
    found = [each for piece in pieces for each in events.feed(piece)]
    return found, events.end()


def data(*texts: str) -> list[Event | KeepAlive]:
    return [Event(text) for text in texts]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", data("a", "b")),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", data("a", "b")),
        (b"data: a\r\rdata: b\r\r", data("a", "b")),
        (b"data: a\r\ndata: b\r\n\r\n", data("a\nb")),
        (b"data: a\r\n\ndata: b\n\r\n", data("a", "b")),
        (b"\xef\xbb\xbfdata: a\n\n", data("a")),
        (b"data: a\ndata: b\ndata\ndata:c\n\n", data("a\nb\n\nc")),
        (b"data:  two\n\n", data(" two")),
        (b"data\n\n", data("")),
        (b"data: a: b\n\n", data("a: b")),
        (b"\n\n\n\ndata: a\n\n", data("a")),
        ("data: 1 €\n\n".encode(), data("1 €")),
        (b"data: \xff\xe2\x82\n\n", data("\ufffd\ufffd")),
        ("data: a\u2028b\x0bc\x85\n\n".encode(), data("a\u2028b\x0bc\x85")),
        (b"event: error\ndata: a\n\ndata: b\n\n", [Event("a", "error"), Event("b")]),
        (b"event: lost\n\ndata: a\n\n", data("a")),
        (b"id: 7\ndata: a\n\ndata: b\n\n", [Event("a", id="7"), Event("b", id="7")]),
        (b"id: 7\0\ndata: a\n\n", data("a")),
        (b"retry: 250\n\ndata: a\n\n", [Event("a", retry=250)]),
        (b"retry: soon\nretry: 99999999999\nfoo: x\nDATA: y\ndata: a\n\n", data("a")),
        (b"data: [DONE]\n\n", data("[DONE]")),
    ],
)
def test_the_format_is_that_of_the_standard(stream: bytes, events: list[Event]) -> None:
    assert read(stream) == (events, None)
    assert read(*(stream[i : i + 1] for i in range(len(stream)))) == (events, None)


def test_a_comment_is_no_event_but_shows_that_the_connection_lives() -> None:
    stream = b": ping\n\ndata: a\n: still there\ndata: b\n\n:\n\n"

    assert read(stream) == (
        [KeepAlive("ping"), KeepAlive("still there"), Event("a\nb"), KeepAlive()],
        None,
    )


@pytest.mark.parametrize(
    ("stream", "unfinished"),
    [
        (b"", None),
        (b"data: a\n\n", None),
        (b"data: a\n\n: pi", None),
        (b"\xef\xbb\xbf", None),
        (b"data: a\n", Unfinished("a")),
        (b"data: a", Unfinished("a")),
        (b"\xef\xbb\xbfdata: a", Unfinished("a")),
        (b"data: [DONE]\n", Unfinished("[DONE]")),
        (b'data: a\ndata: {"cho', Unfinished('a\n{"cho')),
        (b"event: error\n", Unfinished("")),
        (b"da", Unfinished("")),
    ],
)
def test_an_event_that_the_end_cut_off_is_reported_and_not_delivered(
    stream: bytes, unfinished: Unfinished | None
) -> None:
    events, rest = read(stream)

    assert (rest, events) == (unfinished, data("a") if b"\n\n" in stream else [])


def test_an_event_comes_with_the_last_byte_of_its_blank_line_and_not_later() -> None:
    for ending in (b"\n\n", b"\r\r", b"\r\n\r"):
        events = Events()
        assert events.feed(b"data: a" + ending[:-1]) == []
        assert events.feed(ending[-1:]) == data("a")
        assert events.feed(b"\ndata: b\n\n") == data("b")


@pytest.mark.parametrize(
    "stream",
    [
        b"data: " + b"x" * 100,
        b": " + b"x" * 100,
        b"data: " + b"x" * 100 + b"\n\n",
        b"data: x\n" * 20,
        b"foo: x\n" * 20,
    ],
)
def test_an_event_without_end_is_garbled(stream: bytes) -> None:
    for pieces in ([stream], [stream[i : i + 1] for i in range(len(stream))]):
        with pytest.raises(TooLong) as raised:
            read(*pieces, largest=50)
        assert raised.value.failure is Failure.GARBLED


def test_the_bound_is_for_one_event_and_comments_do_not_add_to_it() -> None:
    small = b"data: 1234\n: ping ping ping\n: ping ping ping\n\n"

    events, rest = read(small * 20, largest=30)

    assert [each for each in events if isinstance(each, Event)] == data("1234") * 20
    assert rest is None


@given(STREAMS, st.lists(st.integers(0, 200), max_size=12))
@example(b"data: \xe2\x82\xac\r\n\r\n", [7, 8, 11, 13])
@example(b"\xef\xbb\xbfdata: a\r\r\ndata: b\n\n", [1, 2, 11, 12])
def test_no_bytes_break_it_and_no_cutting_changes_what_is_read(
    stream: bytes, cuts: list[int]
) -> None:
    places = sorted({0, *(cut for cut in cuts if cut < len(stream)), len(stream)})
    pieces = [stream[a:b] for a, b in zip(places, places[1:], strict=False)]
    bytewise = [stream[i : i + 1] for i in range(len(stream))]

    assert read(*pieces) == read(stream) == read(*bytewise, b"")


@given(STREAMS)
def test_whether_an_event_is_too_long_does_not_depend_on_the_cutting(stream: bytes) -> None:
    def outcome(*pieces: bytes) -> Read | None:
        try:
            return read(*pieces, largest=12)
        except TooLong:
            return None

    assert outcome(stream) == outcome(*(stream[i : i + 1] for i in range(len(stream))))


def test_the_work_is_in_proportion_to_the_bytes() -> None:
    def seconds(size: int) -> float:
        stream = b"data: " + b"x" * size + b"\n\n"
        pieces = [stream[i : i + 16] for i in range(0, len(stream), 16)]
        start = time.process_time()
        read(*pieces, largest=10_000_000)
        return time.process_time() - start

    small = min(seconds(100_000) for _ in range(3))

    assert seconds(1_600_000) < 16 * 4 * small  # copying what came before costs 16 * 16
