"""The reply is right, and the bytes that carry it are not: late, cut, split, or never sent."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from holdfast.testing.script import says
from holdfast.testing.server.draft import Draft
from holdfast.testing.server.http import Answer, Do, Framing, Repeat, Step
from holdfast.testing.server.kinds import stream
from holdfast.testing.server.turns import SOME_WORDS, Fault, Scene, Turn

SCRIPTS = says("Grüße aus Zürich. 你好，世界。 👋🏽 Ça va?")
"""Words with characters of two, three and four bytes."""
KEEP_ALIVE = b": keep-alive\n\n"
GARBAGE = b"\xff\xc3\x28\xe2\x82"
PLACE_OF_GARBAGE = "\uffff"
"""Holds the place of garbage while a text is still text: no text has this character."""


def garbled(name: str, of: Turn, change: Callable[[tuple[bytes, ...]], tuple[Step, ...]]) -> Fault:
    """A fault that puts other steps in the place of those that were due."""
    return Fault(name, of, garble=lambda due, _: replace(due, steps=change(due.pieces)))


def broken_off(name: str, of: Turn, after: int, at_byte: int | None, do: Do) -> Fault:
    def garble(due: Answer, _: Scene) -> Answer:
        # What was promised stays promised: a client must see that the body is not whole.
        return replace(due, steps=(*beginning(due, after, at_byte), do), promised=due.size)

    return Fault(name, of, garble=garble)


def beginning(due: Answer, after: int, at_byte: int | None) -> tuple[bytes, ...]:
    """The first pieces of a stream; of an answer in one piece, the first half."""
    if at_byte is not None:
        return (b"".join(due.pieces)[:at_byte],)
    if due.framing is Framing.LENGTH and after:
        return (due.pieces[0][: due.size // 2],)
    return due.pieces[:after]


# --- it ends too early ---------------------------------------------------------------------------


def close_before_answering() -> Fault:
    """The connection is closed as soon as the request is read, without a byte of an answer."""
    return Fault(
        "close-before-answering",
        SOME_WORDS,
        garble=lambda due, _: replace(due, has_head=False, steps=(Do.CLOSE,)),
    )


def dropped_stream(of: Turn = SOME_WORDS, *, after: int = 3, at_byte: int | None = None) -> Fault:
    """The connection is closed in the middle: after so many events, or bytes of the body."""
    return broken_off("dropped-stream", of, after, at_byte, Do.CLOSE)


def reset_stream(of: Turn = SOME_WORDS, *, after: int = 3, at_byte: int | None = None) -> Fault:
    """The same with a reset: what a crashed server or a rebooted router does."""
    return broken_off("reset-stream", of, after, at_byte, Do.RESET)


def half_event(of: Turn = SOME_WORDS) -> Fault:
    """The body ends properly, but in the middle of an event."""

    def change(pieces: tuple[bytes, ...]) -> tuple[Step, ...]:
        middle = len(pieces) // 2
        return (*pieces[:middle], pieces[middle][: len(pieces[middle]) // 2])

    return garbled("half-event", of, change)


def empty_stream() -> Fault:
    """200 and no event at all; the next request on the connection is reset. llama-cpp-python does
    this when a streamed request is too long."""

    def garble(_: Answer, scene: Scene) -> Answer:
        return replace(stream(scene.kind, scene.asked.api, ()), resets_next=True)

    return Fault("empty-stream", SOME_WORDS, garble=garble)


def cut_json(of: Turn = SOME_WORDS) -> Fault:
    """Half of the JSON is missing, while HTTP and the framing of events are in order."""

    def change(pieces: tuple[bytes, ...]) -> tuple[Step, ...]:
        place = len(pieces) // 2
        whole = pieces[place].rstrip(b"\n")
        line_ends = pieces[place][len(whole) :]
        return (*pieces[:place], whole[: len(whole) // 2] + line_ends, *pieces[place + 1 :])

    return garbled("cut-json", of, change)


# --- it does not end -----------------------------------------------------------------------------


def silence() -> Fault:
    """The request is read, and then nothing comes: no status, no end."""
    return Fault(
        "silence",
        SOME_WORDS,
        garble=lambda due, _: replace(due, has_head=False, steps=(Do.STALL,)),
    )


def stall(of: Turn = SOME_WORDS, *, after: int = 0) -> Fault:
    """Status and headers come, so many events if you like, and then nothing more."""

    def garble(due: Answer, _: Scene) -> Answer:
        return replace(due, steps=(*beginning(due, after, None), Do.STALL), promised=due.size)

    return Fault("stall", of, garble=garble)


def keep_alive_only(*, pause: float = 0.02) -> Fault:
    """A stream of comments, for ever: the connection lives, the model may not."""

    def garble(_: Answer, scene: Scene) -> Answer:
        return stream(scene.kind, scene.asked.api, (Repeat(KEEP_ALIVE, pause),))

    return Fault("keep-alive-only", SOME_WORDS, garble=garble)


# --- it comes in an odd way, and is whole --------------------------------------------------------


def keep_alive_comments(of: Turn = SOME_WORDS) -> Fault:
    """Comments stand between the events of a stream."""

    def garble(due: Answer, _: Scene) -> Answer:
        if not is_event_stream(due):
            return due
        return replace(due, steps=tuple(step for each in due.pieces for step in (KEEP_ALIVE, each)))

    return Fault("keep-alive-comments", of, garble=garble)


def crlf(of: Turn = SOME_WORDS) -> Fault:
    """The lines of a stream end with CR LF."""
    return garbled(
        "crlf", of, lambda pieces: tuple(each.replace(b"\n", b"\r\n") for each in pieces)
    )


def trickle(of: Turn = SOME_WORDS) -> Fault:
    """The body comes one byte at a time."""
    return garbled("trickle", of, lambda pieces: tuple(bytes((byte,)) for byte in b"".join(pieces)))


def split_characters(of: Turn = SCRIPTS) -> Fault:
    """Every character of more than one byte is split between two writes."""

    def parts(piece: bytes) -> Iterator[bytes]:
        start = 0
        for place, byte in enumerate(piece):
            if byte >= 0xC0:  # the first byte of such a character
                yield piece[start : place + 1]
                start = place + 1
        yield piece[start:]

    return garbled(
        "split-characters",
        of,
        lambda pieces: tuple(part for each in pieces for part in parts(each)),
    )


def gzipped(of: Turn = SOME_WORDS) -> Fault:
    """The body is compressed, if the client says that it can read that."""

    def garble(due: Answer, scene: Scene) -> Answer:
        if "gzip" not in scene.received.headers.get("accept-encoding", ""):
            return due
        packer = zlib.compressobj(wbits=31)
        packed = [packer.compress(each) + packer.flush(zlib.Z_SYNC_FLUSH) for each in due.pieces]
        packed[-1] += packer.flush()
        headers = {**due.headers, "Content-Encoding": "gzip"}
        return replace(due, headers=headers, steps=tuple(packed))

    return Fault("gzipped", of, garble=garble)


def long_line(of: Turn = SOME_WORDS, *, size: int = 1024 * 1024) -> Fault:
    """One line of the answer is so many bytes long, of blanks for the most part."""

    def change(pieces: tuple[bytes, ...]) -> tuple[Step, ...]:
        head, brace, rest = pieces[0].partition(b"{")
        return (head + brace + b" " * size + rest, *pieces[1:])

    return garbled("long-line", of, change)


def utf8_garbage(of: Turn = SOME_WORDS) -> Fault:
    """There are bytes in the text that are not UTF-8."""

    def spoil(draft: Draft, _: Scene) -> Draft:
        return replace(draft, text=f"{draft.text} {PLACE_OF_GARBAGE}!")

    def garble(due: Answer, _: Scene) -> Answer:
        place = PLACE_OF_GARBAGE.encode()
        return replace(due, steps=tuple(each.replace(place, GARBAGE) for each in due.pieces))

    return Fault("utf8-garbage", of, spoil, garble)


def is_event_stream(answer: Answer) -> bool:
    return answer.headers.get("Content-Type", "").startswith("text/event-stream")
