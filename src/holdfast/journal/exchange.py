"""A session as lines of JSON, to be carried to another journal and read there again.

The first line says what it is, then comes one line for each event and each blob that an event names.
What comes in is somebody else's file: every line is checked, and the whole is folded, before
anything is written. Lone surrogates survive; two that form a pair become the character they mean.
Sessions of the terminal agent buddy are `buddy_file`.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from holdfast.core.events import Event, FileKept, ToolFinished
from holdfast.core.machine import replay
from holdfast.core.state import NEW, State
from holdfast.journal.base import About, Journal, JournalError
from holdfast.journal.codec import Unreadable, event_of, plain_event
from holdfast.journal.rows import key_of

FORMAT = "holdfast session"
VERSION = 1
LONGEST = 256_000_000
"""Characters of one line."""


class BadFile(JournalError):
    """A file that is not what it should be; the sentence names the line."""


async def exported(journal: Journal, session: str) -> list[str]:
    """The lines of a session, without line ends."""
    about = await journal.about(session)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "id": about.id,
        "title": about.title,
        "folder": about.folder,
        "model": about.model,
        "labels": about.labels,
    }
    lines = [json.dumps(header)]
    sent: set[str] = set()
    for stored in await journal.read(session):
        for key in blobs_of(stored.event):
            if key not in sent:
                sent.add(key)
                content = base64.b64encode(await journal.blob(key)).decode()
                lines.append(json.dumps({"blob": key, "content": content}))
        lines.append(json.dumps({"seq": stored.seq, "event": plain_event(stored.event)}))
    return lines


def blobs_of(event: Event) -> Iterator[str]:
    if isinstance(event, ToolFinished):
        yield from (attached.blob for attached in event.attached if attached.blob)
    if isinstance(event, FileKept) and event.blob:
        yield event.blob


@dataclass
class Parcel:
    """What a file holds, checked."""

    about: About
    log: list[Event] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    state: State = NEW


async def imported(journal: Journal, lines: Iterable[str]) -> str:
    """The id of a new session with the same log; `BadFile` if it is none, and nothing is written."""
    parcel = unpacked(lines)
    about = parcel.about
    book = await journal.create(
        folder=about.folder, model=about.model, title=about.title, labels=about.labels
    )
    for content in parcel.blobs.values():
        await book.keep(content)
    book.append(parcel.log, parcel.state)
    await book.close()
    return book.id


def unpacked(lines: Iterable[str]) -> Parcel:
    parcel: Parcel | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        value = parsed(line, number)
        if parcel is None:
            parcel = Parcel(about_of(value, number))
        elif "blob" in value:
            add_blob(parcel, value, number)
        else:
            add_event(parcel, value, number)
    if parcel is None:
        raise BadFile("line 1: the file is empty; the first line of a session says what it is.")
    return parcel


def parsed(line: str, number: int) -> dict[str, Any]:
    if len(line) > LONGEST:
        refuse(number, f"longer than {LONGEST} characters")
    try:
        value = json.loads(line, parse_constant=no_number)
    except (ValueError, RecursionError) as wrong:
        refuse(number, f"no JSON: {wrong}")
    if type(value) is not dict:
        refuse(number, "not an object")
    return value


def no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def about_of(value: dict[str, Any], number: int) -> About:
    if value.get("format") != FORMAT:
        refuse(number, f"not the first line of a session: its format is not '{FORMAT}'")
    if value.get("version") != VERSION:
        refuse(number, f"version {value.get('version')!r}; this Holdfast reads version {VERSION}")
    texts = {name: value.get(name, "") for name in ("id", "title", "folder", "model")}
    labels = value.get("labels", [])
    if not all(type(text) is str for text in texts.values()):
        refuse(number, "title, folder and model must be texts")
    if type(labels) is not list or not all(is_label(label) for label in labels):
        refuse(number, "labels must be pairs of texts")
    return About(**texts, labels=tuple((name, text) for name, text in labels))


def is_label(label: object) -> bool:
    return type(label) is list and len(label) == 2 and all(type(each) is str for each in label)


def add_blob(parcel: Parcel, value: dict[str, Any], number: int) -> None:
    key, content = value["blob"], value.get("content")
    if type(key) is not str or type(content) is not str:
        refuse(number, "a blob has a key and a content, both texts")
    try:
        content = base64.b64decode(content, validate=True)
    except ValueError:
        refuse(number, "the content of a blob must be base64")
    if key_of(content) != key:
        refuse(number, f"the blob {key} has another content than its key says")
    parcel.blobs[key] = content


def add_event(parcel: Parcel, value: dict[str, Any], number: int) -> None:
    expected = len(parcel.log) + 1
    if value.get("seq") != expected:
        refuse(number, f"event {value.get('seq')!r} stands where event {expected} should")
    try:
        event = event_of(value.get("event"))
    except Unreadable as wrong:
        refuse(number, str(wrong))
    missing = [key for key in blobs_of(event) if key not in parcel.blobs]
    if missing:
        refuse(number, f"the blob {missing[0]} that it names stands on no line before it")
    try:
        parcel.state = replay([event], parcel.state)
    except Exception as wrong:  # the rules of the loop never wrote this log
        refuse(number, f"the event cannot follow those before it ({type(wrong).__name__}: {wrong})")
    parcel.log.append(event)


def refuse(number: int, why: str) -> NoReturn:
    raise BadFile(f"line {number}: {why}.") from None
