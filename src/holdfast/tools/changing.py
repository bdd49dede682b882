"""What a change would make of a file, worked out before anything is touched; and doing it."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from holdfast.tools.base import ToolError
from holdfast.tools.disk import Stamp, in_words, refuse_locked, replaced, whole
from holdfast.tools.editing import diff, edited
from holdfast.tools.texts import PLAIN, Form, count, decoded, is_binary, lines_in
from holdfast.tools.workspace import Place

EDITED_MOST = 16 << 20
"""Bytes of a file that can be edited."""
REMEMBERED = 4_096
"""Files of which it is remembered how they were when they were last seen."""


@dataclass(slots=True)
class Seen:
    """How files were when a session last saw them, so that it does not write over the work of
    somebody else. In memory only: a session that is opened again has seen nothing."""

    stamps: OrderedDict[tuple[str, Path], Stamp] = field(default_factory=OrderedDict)
    lock: Lock = field(default_factory=Lock)

    def note(self, session: str, place: Place, stamp: Stamp) -> None:
        with self.lock:
            self.stamps[session, place.real] = stamp
            self.stamps.move_to_end((session, place.real))
            if len(self.stamps) > REMEMBERED:
                self.stamps.popitem(last=False)

    def check(self, session: str, place: Place, stamp: Stamp) -> None:
        known = self.stamps.get((session, place.real), stamp)
        if replace(known, mode=stamp.mode) != stamp:
            raise ToolError(
                f"{place.name} was changed by somebody else since you last saw it, and is left "
                "as it is. Read it again first."
            )


@dataclass(frozen=True, slots=True)
class Change:
    """What a file would become."""

    place: Place
    old: tuple[bytes, Stamp] | None
    """What is there now; None if there is no file."""
    before: str
    after: str
    content: bytes
    told: str

    @property
    def is_needed(self) -> bool:
        return self.old is None or self.old[0] != self.content

    @property
    def diff(self) -> str:
        return diff(self.place.name, self.before, self.after)


def written(place: Place, content: str, check: Callable[[Place, Stamp], None]) -> Change:
    """A file with other content. Its encoding and line ends stay what they are."""
    old, before, form = found_at(place), "", PLAIN
    if old is not None:
        check(place, old[1])
        before, form = ("", PLAIN) if is_binary(old[0]) else decoded(old[0])
    crlf = form.newline == "\r\n" and "\r" not in content
    after = content.replace("\n", "\r\n") if crlf else content
    try:
        data = form.encoded(after)
    except UnicodeEncodeError:
        form = PLAIN
        data = form.encoded(after)
    change = Change(place, old, before, after, data, "")
    return replace(change, told=told_of(change, form))


def told_of(change: Change, form: Form) -> str:
    name, lines = change.place.name, count(lines_in(change.after), "line")
    if change.old is None:
        return f"Created {name}: {lines}."
    if not change.is_needed:
        return f"{name} had exactly this content already ({lines}). Nothing was changed."
    was = "no text" if is_binary(change.old[0]) else lines_in(change.before)
    return f"Overwrote {name}: {lines}, before {was}.{remark(form)}"


def replacing(place: Place, old: str, new: str, *, everywhere: bool) -> Change:
    """A file with some of its text replaced; `FileNotFoundError` if there is none.

    Nobody is checked: who knows the text to replace knows what is there.
    """
    found = found_at(place)
    if found is None:
        raise FileNotFoundError(place.name)
    if is_binary(found[0]):
        raise ToolError(f"{place.name} is not text; it cannot be edited.")
    before, form = decoded(found[0])
    after, lines = edited(before, form, old, new, everywhere=everywhere)
    try:
        data = form.encoded(after)
    except UnicodeEncodeError:
        raise ToolError(
            f"{place.name} is in Latin-1, which has no character for some of `new`."
        ) from None
    told = f"Replaced {count(len(lines), 'place')} in {place.name}."
    change = Change(place, found, before, after, data, told)
    return replace(change, told=f"{told}\n{change.diff}")


def carry_out(change: Change) -> Stamp:
    place = change.place
    if found_at(place) != change.old:
        raise ToolError(f"{place.name} was changed by somebody else just now. Read it again.")
    try:
        return replaced(place, change.content)
    except OSError as wrong:
        raise in_words(wrong, place) from wrong


def found_at(place: Place) -> tuple[bytes, Stamp] | None:
    """What is in a file that is to be changed; None if there is none."""
    try:
        found = whole(place, EDITED_MOST)
    except OSError as wrong:
        raise in_words(wrong, place) from wrong
    if found is not None:
        refuse_locked(found[1].mode, place)
    return found


def remark(form: Form) -> str:
    """What the model may not expect of the file it wrote."""
    ends = " Its line ends stay CRLF." if form.newline == "\r\n" else ""
    return ends if form.encoding == "utf-8" else f"{ends} Its encoding stays {form.encoding}."
