"""Calls that a model writes as text, in the many ways models have for it.

`read` takes the calls out of a text and leaves the rest as it is, byte for byte. All JSON goes
through the one reader of `repair`. What stands in call markup is a call whatever it names; an
object without markup is one only if it names a tool that exists. What is cut off is not completed.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from holdfast.core.events import WantedCall
from holdfast.core.jsontext import dumped, json_in
from holdfast.core.tools import ToolSpec, resolve
from holdfast.models.repair import Found, Repaired, Unclear, found, found_before, repaired

CUT = "Your call was cut off before its end, so it was not run. Write it again, shorter if you can."
NOT_JSON = "Your call could not be read, because it is not valid JSON. Write it again as JSON."
NAMELESS = "Your call could not be read, because it does not name one tool. Write it again."
ARGUMENTS = "Your call could not be read, because its arguments are not one JSON object."
NO_ANSWER = 'Your answer could not be read: FINAL needs a JSON object with your text in "answer".'

OPEN = r"""(?:<(?:\w+:)?(?:tool_calls?|function_calls?)>|\[TOOL_CALLS\]
    |<[|｜]tool▁calls?▁begin[|｜]>|<\|(?:tool_call|tool_call_start|python_tag|tool_call_begin
    |tool_calls_section_begin|action_start|plugin|START_ACTION)\|>)"""
CLOSE = r"""(?:</(?:\w+:)?(?:tool_calls?|function_calls?|function|invoke)>|\[/TOOL_CALLS\]
    |<[|｜]tool▁calls?▁end[|｜]>
    |<\|(?:tool_call_end|tool_calls_section_end|action_end|END_ACTION|call|eom_id|eot_id)\|>)"""
FUNCTION = r"""<(?:function|invoke)(?:=|\s+name=)["']?(?P<name>[^"'>\s]+)["']?\s*>\s*"""
MARK = re.compile(
    rf"""(?P<fence>(?P<ticks>`{{3,}}|~{{3,}})[ \t]*(?P<language>[\w.+-]*)) | (?P<think><think>)
  | (?<![`"'])(?: (?P<markup>(?:{OPEN}\s*)+) | (?P<function>{FUNCTION})
      | (?P<harmony><\|channel\|>\w+[ ]to=(?:functions\.)?(?P<to>[\w.-]+)
          [^{{}}\n]{{0,99}}<\|message\|>\s*))
  | (?<![\w`"'])(?: (?P<action>(?i:tool_call)[ \t]*:?\s*(?=\{{+\s*["'“]))
      | (?P<final>(?:FINAL|^[ \t]*(?i:final))[ \t]*:?\s*(?=\{{+\s*["'“]))
      | (?P<lines>^[ \t]*(?:Tool|Action)[ \t]*:[ \t]*(?P<of>[\w.-]+)[ \t]*\n
          [ \t]*(?:Arguments|Action\ Input)[ \t]*:\s*(?=\{{))
      | (?P<python>(?=\[[ \t]*[A-Za-z_][\w.-]*\()) 
      | (?P<bare>^[ \t]*(?=(?:\[\s{{0,99}})?\{{{{1,2}}\s{{0,99}}["'“])))""",
    re.VERBOSE | re.MULTILINE,
)
TAIL = re.compile(rf"(?:[\s}}]*{CLOSE})+", re.VERBOSE)
STOPS = re.compile(rf"{OPEN}|{CLOSE}|```", re.VERBOSE)
"""What shows that a call has ended, also where its own brackets do not."""
NAMED = re.compile(
    rf"""(?:{FUNCTION}
    |(?:function<[|｜]tool▁sep[|｜]>|functions\.)?(?P<bare>[A-Za-z_][\w.-]*)(?::\d+)?\s*
    (?:<\|tool_call_argument_begin\|>|<[|｜]tool▁sep[|｜]>|(?:\[CALL_ID\]\w+)?\[ARGS\])?\s*)
    (?P<ticks>```(?:json)?\s*)?(?=\{{|<param|<arg_key>|</function>|</invoke>|</tool_call>)""",
    re.VERBOSE,
)
PARAMETER = re.compile(
    r"""\s*(?:<param(?:eter)?(?:=|\s+name=)["']?(?P<xml>[^"'>\n]+)["']?\s*>
    |<arg_key>(?P<glm>[^<>]+)</arg_key>\s*<arg_value>)""",
    re.VERBOSE,
)
VALUE_ENDS = re.compile(
    r"</(?:param(?:eter)?|arg_value)>(?=\s*(?:<param|<arg_key>|</(?:function|invoke|tool_call)>))"
)
FUNCTION_ENDS = re.compile(r"\s*</(?:function|invoke|tool_call)>")
PYTHON_CALL = re.compile(r"\s*(?P<name>[A-Za-z_][\w.-]*)\(\s*")
KEYWORD = re.compile(r"(?P<key>[A-Za-z_]\w*)\s*=\s*")
NEXT_KEYWORD = re.compile(r"\s*(?:,\s*|(?=\)))")
BETWEEN = re.compile(r"\s*[;,]?\s*")
SPACE = re.compile(r"\s*")
LINE_END = re.compile(r"[ \t]*(?:\n|\Z)")
FIRST_NAME = re.compile(
    r"""[\[{\s]*["'“](?:name|tool|function|action|type)["'”]\s*:\s*["'“]([^"'”]*)"""
)
NAME_KEYS = ("name", "tool", "function", "tool_name", "action")
ARGUMENT_KEYS = ("arguments", "parameters", "input", "args", "action_input")
WRAPPERS = ("tool_calls", "tool_call", "function_call", "function")
EXPLICIT_TYPES = ("tool_call", "function_call", "tool_use")
CALL_FENCES = ("tool_call", "tool_calls", "tool_code")
NEAR = 64
FINE_IN_PYTHON = ("single quotes", "True, False or None as in Python")


@dataclass(frozen=True, slots=True)
class Final:
    """An answer in the form the model was told to give it in."""

    answer: str
    citations: tuple[int, ...] = ()
    json: str = "{}"
    """The whole object, for what else a protocol puts there."""


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
    """What a mark turned out to be: text, if there is neither call nor answer."""

    end: int
    calls: tuple[WantedCall, ...] = ()
    final: Final | None = None
    fixes: tuple[str, ...] = ()


def read(text: str, tools: Collection[str]) -> Spoken:
    """The calls in `text`. `tools` may map names to schemas, for values that have no type."""
    scan, at, kept_to, problem = Scan(text, tools), 0, 0, ""
    kept: list[str] = []
    found_calls: list[Taken] = []
    while mark := MARK.search(text, at):
        try:
            taken = scan.take(mark)
        except Unclear as wrong:
            problem = problem or wrong.why or (CUT if wrong.cut else NOT_JSON)
            taken = Taken(len(text) if wrong.cut else wrong.at)
        if taken.calls or taken.final:
            found_calls.append(taken)
            kept.append(text[kept_to : mark.start()])
            kept_to = taken.end
        at = max(taken.end, mark.end(), mark.start() + 1)
    left = "".join((*kept, text[kept_to:]))
    every = together(found_calls, at)
    left = left if left.strip() or not found_calls else ""
    return Spoken(left, every.calls, every.final, problem, tuple(dict.fromkeys(every.fixes)))


def together(several: Iterable[Taken], end: int) -> Taken:
    parts = tuple(several)
    calls = tuple(call for one in parts for call in one.calls)
    final = next((one.final for one in parts if one.final), None)
    return Taken(end, calls, final, tuple(fix for one in parts for fix in one.fixes))


class Scan:
    def __init__(self, text: str, tools: Collection[str]) -> None:
        schemas = tools if isinstance(tools, Mapping) else dict.fromkeys(tools, "{}")
        self.text = text
        self.specs = [ToolSpec(name=name, parameters=schemas[name]) for name in schemas]
        self.stops = [stop.start() for stop in STOPS.finditer(text)]
        self.mended: list[str] = []
        self.begin, self.last_thought = self.past(SPACE, 0), text.rfind("</think>")

    def exists(self, name: str) -> bool:
        return resolve(name, self.specs) is not None

    def past(self, pattern: re.Pattern[str], at: int) -> int:
        match = pattern.match(self.text, at)
        return match.end() if match else at

    def unclear(self, at: int) -> Unclear:
        return Unclear(at, cut=self.past(SPACE, at) == len(self.text))

    def take(self, mark: re.Match[str]) -> Taken:
        kind, at = mark.lastgroup, mark.end()
        if kind == "fence":
            return self.fence(mark, mark["language"].lower())
        if kind == "think":
            if at <= self.last_thought:
                return Taken(self.text.index("</think>", at))
            return Taken(len(self.text) if mark.start() == self.begin else at)
        if kind == "bare":
            taken = self.likely(at)
            return taken if LINE_END.match(self.text, taken.end) else Taken(taken.end)
        if kind == "python":
            return self.python_in_prose(at)
        if kind == "lines":
            return self.named(mark["of"], at) if self.exists(mark["of"]) else Taken(at)
        taken = self.marked(mark, at)
        tail = TAIL.match(self.text, taken.end) if taken.calls or taken.final else None
        if tail is None:
            return taken
        fixes = ("closing brackets too many",) if "}" in tail[0] else ()
        return replace(taken, end=tail.end(), fixes=(*taken.fixes, *fixes))

    def marked(self, mark: re.Match[str], at: int) -> Taken:
        """What stands in call markup."""
        if mark["final"] is not None:
            value = self.value(at)
            return Taken(value.end, (), final_of(value), value.fixes)
        if mark["to"]:
            return self.named(mark["to"], at)
        named = NAMED.match(self.text, mark.start() if mark["function"] else at)
        is_word = named and named["bare"] and self.text.startswith("</", named.end())
        if named and (not is_word or self.exists(named["bare"])):
            taken = self.function(named["name"] or named["bare"], named.end())
            fence = self.past(SPACE, taken.end)
            in_fence = named["ticks"] and self.text.startswith("```", fence)
            return replace(taken, end=fence + 3) if in_fence else taken
        if PYTHON_CALL.match(self.text, at + self.text.startswith("[", at)):
            return self.python(at, explicit=True)
        if self.text.startswith(("{", "["), at):
            return self.objects(at, explicit=True)
        stop = bisect_left(self.stops, at)
        begins_line = mark.start() == self.begin or self.text[mark.start() - 1] == "\n"
        if begins_line and (stop < len(self.stops) or self.past(SPACE, at) == len(self.text)):
            raise self.unclear(at)
        return Taken(at)

    def fence(self, mark: re.Match[str], language: str) -> Taken:
        """A fenced block is a call if there is nothing but calls in it."""
        ticks, at = mark["ticks"], mark.end()
        within: list[Taken] = []
        while language in ("", "json", *CALL_FENCES):
            at = self.past(SPACE, at)
            if self.text.startswith(ticks, at) or at == len(self.text):
                return together(within, at + len(ticks))
            inner = MARK.match(self.text, at)
            if inner and inner.lastgroup not in ("fence", "think", "bare"):
                within.append(self.take(inner))
            elif self.text.startswith(("{", "["), at):
                within.append(self.likely(at, explicit=language in CALL_FENCES))
            elif language in CALL_FENCES and PYTHON_CALL.match(self.text, at):
                within.append(self.python(at, explicit=True))
            else:
                break
            at = within[-1].end
            if not (within[-1].calls or within[-1].final):
                break
        line = self.text.find("\n", mark.end())
        inline = self.text.find(ticks, mark.end(), line if line >= 0 else len(self.text))
        if inline >= 0:
            return Taken(max(at, inline + len(ticks)))
        close = re.compile(rf"\n[ \t]*{ticks}").search(self.text, max(at - 1, 0))
        return Taken(close.end() if close else len(self.text))

    def likely(self, at: int, *, explicit: bool = False) -> Taken:
        """Objects without markup: what cannot be read is a problem only if it was to be a call."""
        try:
            return self.objects(at, explicit=explicit)
        except Unclear as wrong:
            name = FIRST_NAME.match(self.text, at)
            if explicit or (name and (name[1] in EXPLICIT_TYPES or self.exists(name[1]))):
                raise
            return Taken(wrong.at)

    def value(self, at: int) -> Found:
        try:
            return found(self.text, at)
        except Unclear as wrong:
            stop = bisect_left(self.stops, at)
            if stop == len(self.stops):
                raise
            try:
                # Farther away it would fail where it failed: only what is at the end can be mended.
                if self.stops[stop] - wrong.at < NEAR:
                    return found_before(self.text, at, self.stops[stop])
            except Unclear:
                pass
            raise Unclear(wrong.at) from None

    def objects(self, at: int, *, explicit: bool) -> Taken:
        """One call or answer as JSON, or several of them."""
        several: list[Taken] = []
        while True:
            value = self.value(at)
            final = final_of(value) if kind_of(value) == "final" else None
            calls = () if final else self.calls_in(value, explicit=explicit and not several)
            if not (calls or final):
                return together(several, several[-1].end if several else value.end)
            several.append(Taken(value.end, calls, final, (*value.fixes, *self.mended)))
            self.mended.clear()
            at = self.past(BETWEEN, value.end)
            if not (self.text.startswith("{", at) and FIRST_NAME.match(self.text, at)):
                return together(several, value.end)

    def calls_in(self, value: Found, *, explicit: bool) -> tuple[WantedCall, ...]:
        """The calls that this object or list asks for; none, if it is something else."""
        if value.items:
            inner = [self.calls_in(found(item, 0), explicit=explicit) for item in value.items]
            return tuple(call for calls in inner for call in calls) if all(inner) else ()
        members = dict(value.members)
        for wrapper in WRAPPERS:
            if members.get(wrapper, "").startswith(("{", "[")):
                calls = self.calls_in(found(members[wrapper], 0), explicit=explicit)
                return tuple(replace(c, id=c.id or word(members.get("id", ""))) for c in calls)
        explicit = explicit or kind_of(value) in EXPLICIT_TYPES
        names = {word(members[key]) for key in NAME_KEYS if word(members.get(key, ""))}
        given = [members[key] for key in ARGUMENT_KEYS if key in members]
        name = names.pop() if len(names) == 1 else ""
        if not explicit and not (self.exists(name) and len(given) == 1):
            return ()
        if "description" in members and "parameters" in members:  # the tool, not a call of it
            return ()
        if not name:
            raise Unclear(value.end, why=NAMELESS)
        arguments = object_in(given[0] if given else "{}") if len(given) < 2 else None
        if arguments is None:
            raise Unclear(value.end, why=ARGUMENTS)
        self.mended += arguments.fixes
        return (WantedCall(name, arguments.arguments, word(members.get("id", ""))),)

    def named(self, name: str, at: int) -> Taken:
        """The arguments of a call whose name stands before them."""
        value = self.value(at)
        return Taken(value.end, (WantedCall(name, value.json),), None, value.fixes)

    def function(self, name: str, at: int) -> Taken:
        """The same, or `<parameter=…>` and the like: values without quotes and without a type."""
        if self.text.startswith("{", at):
            return self.named(name, at)
        given: dict[str, str] = {}
        while parameter := PARAMETER.match(self.text, at):
            key = (parameter["xml"] or parameter["glm"]).strip()
            ends = VALUE_ENDS.search(self.text, parameter.end())
            if ends is None or key in given:
                raise Unclear(at, cut=ends is None, why="" if ends is None else ARGUMENTS)
            given[key] = self.typed(name, key, self.text[parameter.end() : ends.start()])
            at = ends.end()
        if (end := self.past(FUNCTION_ENDS, at)) == at:
            raise Unclear(at, cut=bisect_left(self.stops, at) == len(self.stops))
        return Taken(end, (WantedCall(name, joined(given)),))

    def typed(self, name: str, key: str, raw: str) -> str:
        """The value as JSON: text, unless its schema or its look says otherwise."""
        raw = raw.removeprefix("\n").removesuffix("\n")
        spec = resolve(name, self.specs)
        kind: object = spec and json_in(spec.parameters)
        for step in ("properties", key, "type"):
            kind = kind.get(step) if isinstance(kind, dict) else None
        try:
            value = found(raw.strip(), 0)
        except Unclear:
            return dumped(raw)
        fits = "string" not in kind if isinstance(kind, str | list) else value.json[0] not in '{["'
        return value.json if fits and value.end == len(raw.strip()) else dumped(raw)

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
        several: list[Taken] = []
        at += listed
        while (head := PYTHON_CALL.match(self.text, at)) and (listed or not several):
            if not (explicit or self.exists(head["name"])):
                return Taken(head.end())
            several.append(self.keywords(head["name"], head.end()))
            at = self.past(BETWEEN, several[-1].end) if listed else several[-1].end
        if listed and not self.text.startswith("]", at):
            raise self.unclear(at)
        return together(several, at + listed)

    def keywords(self, name: str, at: int) -> Taken:
        given: dict[str, str] = {}
        fixes: list[str] = []
        while keyword := KEYWORD.match(self.text, at):
            value = found(self.text, keyword.end())
            at = self.past(NEXT_KEYWORD, value.end)
            if keyword["key"] in given or (at == value.end and self.text[at : at + 1] != ")"):
                raise self.unclear(at)
            given[keyword["key"]] = value.json
            fixes += (fix for fix in value.fixes if fix not in FINE_IN_PYTHON)
        if not self.text.startswith(")", at):
            raise self.unclear(at)
        return Taken(at + 1, (WantedCall(name, joined(given)),), None, tuple(fixes))


def joined(given: Mapping[str, str]) -> str:
    return f"{{{','.join(f'{dumped(key)}:{value}' for key, value in given.items())}}}"


def word(value: str) -> str:
    """The text of a JSON string; empty if it is none."""
    return str(json.loads(value)) if value.startswith('"') else ""


def kind_of(value: Found) -> str:
    return word(dict(value.members).get("type", ""))


def object_in(value: str) -> Repaired | None:
    """Arguments as an object, also where they were sent as its text or left out."""
    if value in ("null", '""'):
        return Repaired("{}")
    if value.startswith('"'):
        return repaired(word(value))
    return Repaired(value) if value.startswith("{") else None


def final_of(value: Found) -> Final:
    members = dict(value.members)
    if not members.get("answer", "").startswith('"'):
        raise Unclear(value.end, why=NO_ANSWER)
    cited = members.get("citations", "[]")
    items = [str(item).strip() for item in json.loads(cited)] if cited[0] == "[" else []
    numbers = tuple(int(item) for item in items if re.fullmatch(r"[0-9]{1,9}", item))
    return Final(word(members["answer"]), numbers, value.json)


# --- teaching it ----------------------------------------------------------------------------


class Dialect(Enum):
    """How a model is told to call tools where its server cannot offer it any."""

    ACTIONS = ('TOOL_CALL {"tool": ', 'FINAL {"answer": ')
    """DocuChat's ADR-0005."""
    JSON = ('{"type": "tool_call", "tool": ', '{"type": "final", "answer": ')
    """Nothing but one object: for servers that can hold a model to a schema."""


def instructions(tools: Iterable[ToolSpec], dialect: Dialect) -> str:
    """What a model must be told to speak the dialect."""
    listed = "\n".join(
        f"- {tool.name}: {' '.join(tool.description.split())} Input: {tool.parameters}"
        for tool in tools
    )
    return (
        "To use a tool, reply with this and nothing after it:\n"
        f"{history_text('name', '{...}', dialect)}\n"
        "The result comes in the next message. When you have the answer, reply with:\n"
        f'{dialect.value[1]}"...", "citations": [1, 2]}}\n'
        "Write valid JSON: double quotes, line breaks in strings as \\n. "
        "Leave citations empty if you cite nothing.\n"
        f"Tools:\n{listed or '(none)'}"
    )


def history_text(name: str, arguments: str, dialect: Dialect) -> str:
    """A past call as the model would have written it."""
    return f'{dialect.value[0]}{dumped(name)}, "input": {arguments}}}'


def history_result(name: str, text: str) -> str:
    """A past result, for a message in the user's role."""
    return f"RESULT of {name}:\n{text}"
