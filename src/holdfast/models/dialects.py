"""Calls that a model writes as text, in the many ways models have for it.

`read` takes the calls out of a text and leaves the rest as it is, byte for byte. How calls look is
the table in `marks`, what an object asks for is in `asked`, and all JSON goes through the one
reader of `repair`. What stands in call markup is a call whatever it names; without markup it is one
only if it names a tool that exists. What is cut off is not completed.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from holdfast.core.events import WantedCall
from holdfast.core.jsontext import json_in
from holdfast.core.tools import ToolSpec, resolve
from holdfast.models import marks
from holdfast.models.asked import (
    ARGUMENTS,
    EXPLICIT_TYPES,
    STATED,
    Asked,
    Final,
    asked,
    final_of,
    joined,
    object_in,
    together,
    typed,
)
from holdfast.models.repair import Found, Unclear, found, found_before
from holdfast.models.thinking import BLOCKS

CUT = "Your call was cut off before its end, so it was not run. Write it again, shorter if you can."
NOT_JSON = "Your call could not be read, because it is not valid JSON. Write it again as JSON."
NOTHING = Asked()


@dataclass(frozen=True, slots=True)
class Spoken:
    text: str
    """What is left when the calls are taken out."""
    calls: tuple[WantedCall, ...] = ()
    final: Final | None = None
    problem: str = ""
    """What was wrong with a call that could not be read, in words for the model."""
    fixes: tuple[str, ...] = ()
    """What had to be mended, in words for people."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a mark turned out to be: text, if nothing is asked for."""

    end: int
    asked: Asked = NOTHING


def read(text: str, tools: Collection[str]) -> Spoken:
    """The calls in `text`. `tools` may map names to schemas, for values that have no type."""
    scan, at, kept_to, problem = Scan(text, tools), 0, 0, ""
    kept: list[str] = []
    found_calls: list[Asked] = []
    while mark := marks.MARK.search(text, at):
        try:
            taken = scan.take(mark)
        except Unclear as wrong:
            problem = problem or wrong.why or (CUT if wrong.cut else NOT_JSON)
            taken = Taken(len(text) if wrong.cut else wrong.at)
        if taken.asked:
            found_calls.append(taken.asked)
            kept.append(text[kept_to : mark.start()])
            kept_to = taken.end
        at = max(taken.end, mark.end(), mark.start() + 1)
    left = "".join((*kept, text[kept_to:]))
    every = together(found_calls)
    left = left if left.strip() or not found_calls else ""
    return Spoken(left, every.calls, every.final, problem, tuple(dict.fromkeys(every.fixes)))


class Scan:
    """Reads what stands at the marks of one text."""

    def __init__(self, text: str, tools: Collection[str]) -> None:
        schemas = tools if isinstance(tools, Mapping) else dict.fromkeys(tools, "{}")
        self.text = text
        self.specs = [ToolSpec(name=name, parameters=schemas[name]) for name in schemas]
        self.stops = [stop.start() for stop in marks.STOPS.finditer(text)]
        self.begin = self.past(marks.SPACE, 0)
        self.last_thoughts = {end: text.rfind(end) for end in BLOCKS.values()}

    def exists(self, name: str) -> bool:
        return resolve(name, self.specs) is not None

    def past(self, pattern: re.Pattern[str], at: int) -> int:
        match = pattern.match(self.text, at)
        return match.end() if match else at

    def unclear(self, at: int) -> Unclear:
        return Unclear(at, cut=self.past(marks.SPACE, at) == len(self.text))

    # --- one mark ---------------------------------------------------------------------------

    def take(self, mark: re.Match[str]) -> Taken:
        match mark.lastgroup:
            case "fence":
                return self.fence(mark, mark["language"].lower())
            case "think":
                return self.thought(mark)
            case "python":
                return self.python_in_prose(mark.end())
            case "bare":
                return self.alone(self.likely(mark.end()))
            case "heading":
                return self.under(mark["above"], mark.end())
            case "lines":
                name, at = mark["of"], mark.end()
                return self.named(name, at) if self.exists(name) else Taken(at)
            case "final":
                value = self.value(mark.end())
                taken = Taken(value.end, Asked((), final_of(value), value.fixes))
            case "harmony":
                taken = self.named(mark["to"], mark.end())
            case _:
                taken = self.marked(mark)
        return self.with_tail(taken) if taken.asked else taken

    def with_tail(self, taken: Taken) -> Taken:
        """The same with the closing marks behind it."""
        tail = marks.TAIL.match(self.text, taken.end)
        if tail is None:
            return taken
        fixes = (*taken.asked.fixes, *(("closing brackets too many",) if "}" in tail[0] else ()))
        return Taken(tail.end(), replace(taken.asked, fixes=fixes))

    def thought(self, mark: re.Match[str]) -> Taken:
        closer = BLOCKS[mark[0]]
        if mark.end() <= self.last_thoughts[closer]:
            return Taken(self.text.index(closer, mark.end()))
        return Taken(len(self.text) if mark.start() == self.begin else mark.end())

    def marked(self, mark: re.Match[str]) -> Taken:
        """What stands in call markup."""
        at = mark.end()
        named = marks.NAMED.match(self.text, mark.start() if mark["function"] else at)
        is_word = named and named["bare"] and self.text.startswith("</", named.end())
        if named and (not is_word or self.exists(named["bare"])):
            taken = self.function(named["name"] or named["bare"], named.end())
            fence = self.past(marks.SPACE, taken.end)
            in_fence = named["ticks"] and self.text.startswith("```", fence)
            return replace(taken, end=fence + 3) if in_fence else taken
        if marks.PYTHON_CALL.match(self.text, at + self.text.startswith("[", at)):
            return self.python(at, explicit=True)
        if self.text.startswith(("{", "["), at):
            return self.objects(at, explicit=True)
        stop = bisect_left(self.stops, at)
        begins_line = mark.start() == self.begin or self.text[mark.start() - 1] == "\n"
        if begins_line and (stop < len(self.stops) or self.past(marks.SPACE, at) == len(self.text)):
            raise self.unclear(at)
        return Taken(at)

    def fence(self, mark: re.Match[str], language: str) -> Taken:
        """A fenced block is a call if there is nothing but calls in it."""
        ticks, at = mark["ticks"], mark.end()
        within: list[Asked] = []
        while language in marks.FENCES:
            at = self.past(marks.SPACE, at)
            if self.text.startswith(ticks, at) or at == len(self.text):
                return Taken(at + len(ticks), together(within))
            inner = marks.MARK.match(self.text, at)
            if inner and inner.lastgroup not in ("fence", "think", "bare"):
                taken = self.take(inner)
            elif self.text.startswith(("{", "["), at):
                taken = self.likely(at, explicit=language in marks.CALL_FENCES)
            elif language in marks.CALL_FENCES and marks.PYTHON_CALL.match(self.text, at):
                taken = self.python(at, explicit=True)
            else:
                break
            at = taken.end
            if not taken.asked:
                break
            within.append(taken.asked)
        return Taken(self.end_of_fence(ticks, mark.end(), at))

    def end_of_fence(self, ticks: str, start: int, read_to: int) -> int:
        """Behind its closing line, or behind its ticks if it is all in one line."""
        inline = self.text.find(ticks, start)
        if inline >= 0 and self.text.find("\n", start, inline) < 0:
            return max(read_to, inline + len(ticks))
        close = re.compile(rf"\n[ \t]*{ticks}").search(self.text, max(read_to - 1, 0))
        return close.end() if close else len(self.text)

    # --- JSON -------------------------------------------------------------------------------

    def likely(self, at: int, *, explicit: bool = False) -> Taken:
        """Objects without markup: what cannot be read is a problem only if it was to be a call."""
        try:
            return self.objects(at, explicit=explicit)
        except Unclear as wrong:
            name = marks.FIRST_NAME.match(self.text, at)
            if explicit or (name and (name[1] in EXPLICIT_TYPES or self.exists(name[1]))):
                raise
            return Taken(wrong.at)

    def alone(self, taken: Taken) -> Taken:
        """Nothing but text, if its last line goes on."""
        return taken if marks.LINE_END.match(self.text, taken.end) else Taken(taken.end)

    def under(self, name: str, at: int) -> Taken:
        """An object in the line under the name of a tool: its arguments, or the whole call."""
        if not self.exists(name):
            return Taken(at)
        start = self.past(marks.SPACE, at)
        call = self.likely(start)
        return self.alone(call if call.asked else self.named(name, start))

    def objects(self, at: int, *, explicit: bool) -> Taken:
        """One call or answer as JSON, or several of them."""
        several: list[Asked] = []
        end = at
        while True:
            value = self.value(at)
            this = asked(value, self.exists, explicit=explicit and not several)
            if not this:
                return Taken(end if several else value.end, together(several))
            several.append(this)
            end = value.end
            at = self.past(marks.BETWEEN, end)
            if not (self.text.startswith("{", at) and marks.FIRST_NAME.match(self.text, at)):
                return Taken(end, together(several))

    def named(self, name: str, at: int) -> Taken:
        """The arguments of a call whose name stands before them."""
        value = self.value(at)
        arguments = object_in(value.json)
        if arguments is None:
            raise Unclear(value.end, why=ARGUMENTS)
        fixes = (*value.fixes, *arguments.fixes)
        return Taken(value.end, Asked((WantedCall(name, arguments.arguments),), None, fixes))

    def value(self, at: int) -> Found:
        try:
            return found(self.text, at)
        except Unclear as wrong:
            stop = bisect_left(self.stops, at)
            if stop == len(self.stops):
                raise
            try:
                # Farther away it would fail where it failed: only what is at the end can be mended.
                if self.stops[stop] - wrong.at < marks.NEAR:
                    return found_before(self.text, at, self.stops[stop])
            except Unclear:
                pass
            raise Unclear(wrong.at) from None

    # --- values without quotes --------------------------------------------------------------

    def function(self, name: str, at: int) -> Taken:
        """Arguments as JSON, or `<parameter=…>` and the like: values without quotes or type."""
        if self.text.startswith("{", at):
            return self.named(name, at)
        given: dict[str, str] = {}
        while parameter := marks.PARAMETER.match(self.text, at):
            key = (parameter["xml"] or parameter["glm"]).strip()
            ends = marks.VALUE_ENDS.search(self.text, parameter.end())
            if ends is None or key in given:
                raise Unclear(at, cut=ends is None, why="" if ends is None else ARGUMENTS)
            raw = self.text[parameter.end() : ends.start()]
            kind = (
                self.kind_of(name, key)
                if parameter["is_text"] is None
                else STATED[parameter["is_text"]]
            )
            given[key] = typed(raw.removeprefix("\n").removesuffix("\n"), kind)
            at = ends.end()
        if (end := self.past(marks.FUNCTION_ENDS, at)) == at:
            raise Unclear(at, cut=bisect_left(self.stops, at) == len(self.stops))
        return Taken(end, Asked((WantedCall(name, joined(given)),)))

    def kind_of(self, name: str, key: str) -> object:
        """What the schema says about the type of this argument."""
        spec = resolve(name, self.specs)
        kind: object = spec and json_in(spec.parameters)
        for step in ("properties", key, "type"):
            kind = kind.get(step) if isinstance(kind, dict) else None
        return kind

    # --- Python -----------------------------------------------------------------------------

    def python_in_prose(self, at: int) -> Taken:
        try:
            taken = self.python(at, explicit=False)
        except Unclear as wrong:
            if wrong.cut:
                raise
            return Taken(wrong.at)
        is_link = self.text.startswith("(", taken.end)
        return Taken(taken.end) if is_link else taken

    def python(self, at: int, *, explicit: bool) -> Taken:
        """`[f(a="b"), g()]`: keywords and literals, nothing that would have to be evaluated."""
        listed = self.text.startswith("[", at)
        several: list[Asked] = []
        end = at = at + listed
        while head := marks.PYTHON_CALL.match(self.text, at):
            if not (explicit or self.exists(head["name"])):
                return Taken(head.end())
            call = self.keywords(head)
            several.append(call.asked)
            end, at = call.end, self.past(marks.BETWEEN, call.end)
        if listed and not self.text.startswith("]", at):
            raise self.unclear(at)
        return Taken(at + 1 if listed else end, together(several))

    def keywords(self, head: re.Match[str]) -> Taken:
        given: dict[str, str] = {}
        fixes: list[str] = []
        at = head.end()
        while keyword := marks.KEYWORD.match(self.text, at):
            value = found(self.text, keyword.end())
            at = self.past(marks.NEXT_KEYWORD, value.end)
            if keyword["key"] in given or (at == value.end and self.text[at : at + 1] != ")"):
                raise self.unclear(at)
            given[keyword["key"]] = value.json
            fixes += (fix for fix in value.fixes if fix not in marks.FINE_IN_PYTHON)
        for _ in range(1 + bool(head["print"])):
            at = self.past(marks.SPACE, at)
            if not self.text.startswith(")", at):
                raise self.unclear(at)
            at += 1
        name = head["name"]
        if not self.exists(name) and self.exists(name.removesuffix(".call")):
            name = name.removesuffix(".call")  # Llama: brave_search.call(query="…")
        return Taken(at, Asked((WantedCall(name, joined(given)),), None, tuple(fixes)))
