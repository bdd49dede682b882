"""What a JSON value asks for: calls, an answer, or nothing.

Where such values stand in a text is `dialects`. What is marked as a call is one whatever it names;
without a mark it must name a tool that exists.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from holdfast.core.events import WantedCall
from holdfast.core.jsontext import dumped
from holdfast.models.repair import Found, Repaired, Unclear, found, repaired

NAMELESS = "Your call could not be read, because it does not name one tool. Write it again."
ARGUMENTS = "Your call could not be read, because its arguments are not one JSON object."
NO_ANSWER = 'Your answer could not be read: FINAL needs a JSON object with your text in "answer".'

NAME_KEYS = ("name", "tool", "function", "tool_name", "action")
ARGUMENT_KEYS = ("arguments", "parameters", "input", "args", "action_input")
WRAPPERS = ("tool_calls", "tool_call", "function_call", "function")
EXPLICIT_TYPES = ("tool_call", "function_call", "tool_use")
ID_KEYS = ("id", "tool_call_id")


@dataclass(frozen=True, slots=True)
class Final:
    """An answer in the form the model was told to give it in."""

    answer: str
    citations: tuple[int, ...] = ()
    json: str = "{}"
    """The whole object, for what else a protocol puts there."""


@dataclass(frozen=True, slots=True)
class Asked:
    calls: tuple[WantedCall, ...] = ()
    final: Final | None = None
    fixes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.calls or self.final)


def asked(value: Found, exists: Callable[[str], bool], *, explicit: bool) -> Asked:
    """What the value asks for; `Unclear` if it is a call that cannot be read."""
    if kind_of(value) == "final":
        return Asked((), final_of(value), value.fixes)
    wanted = calls_in(value, exists, explicit=explicit)
    return replace(wanted, fixes=(*value.fixes, *wanted.fixes))


def calls_in(value: Found, exists: Callable[[str], bool], *, explicit: bool) -> Asked:
    if value.items:
        inner = [calls_in(found(item, 0), exists, explicit=explicit) for item in value.items]
        return together(inner) if all(inner) else Asked()
    members = dict(value.members)
    id_ = next((word(members[key]) for key in ID_KEYS if key in members), "")
    for wrapper in WRAPPERS:
        if members.get(wrapper, "").startswith(("{", "[")):
            wrapped = calls_in(found(members[wrapper], 0), exists, explicit=explicit)
            return replace(wrapped, calls=tuple(replace(c, id=c.id or id_) for c in wrapped.calls))
    explicit = explicit or kind_of(value) in EXPLICIT_TYPES
    names = {word(members[key]) for key in NAME_KEYS if word(members.get(key, ""))}
    given = [members[key] for key in ARGUMENT_KEYS if key in members]
    name = names.pop() if len(names) == 1 else ""
    if explicit and len(members) == 1 and exists(key := next(iter(members))):
        name, given = key, [members[key]]  # Apertus: {"read": {"path": "a.md"}}
    if not explicit and not (exists(name) and len(given) == 1):
        return Asked()
    if "description" in members and "parameters" in members:  # the tool, not a call of it
        return Asked()
    if not name:
        raise Unclear(value.end, why=NAMELESS)
    arguments = object_in(given[0] if given else "{}") if len(given) < 2 else None
    if arguments is None:
        raise Unclear(value.end, why=ARGUMENTS)
    return Asked((WantedCall(name, arguments.arguments, id_),), None, arguments.fixes)


def together(parts: Iterable[Asked]) -> Asked:
    several = tuple(parts)
    return Asked(
        tuple(call for one in several for call in one.calls),
        next((one.final for one in several if one.final), None),
        tuple(fix for one in several for fix in one.fixes),
    )


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


# --- arguments that come one by one ----------------------------------------------------------

STATED = {"true": "string", "false": "json"}
"""DeepSeek says itself whether a value is text: `<parameter name="a" string="true">`."""


def typed(raw: str, kind: object) -> str:
    """The value as JSON: text, unless its type or, where that is unknown, its look says otherwise."""
    if raw.startswith("<![CDATA[") and raw.endswith("]]>"):
        raw = raw[9:-3]
    try:
        value = found(raw.strip(), 0)
    except Unclear:
        return dumped(raw)
    fits = "string" not in kind if isinstance(kind, str | list) else value.json[0] not in '{["'
    return value.json if fits and value.end == len(raw.strip()) else dumped(raw)


def joined(given: Mapping[str, str]) -> str:
    return f"{{{','.join(f'{dumped(key)}:{value}' for key, value in given.items())}}}"
