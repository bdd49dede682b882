"""Whether a call may run: modes, rules, and what follows from them. Pure: nobody is asked here.

A rule names a tool (`run_shell`, `mcp.github.*`) or a class of access (`read`, `edit`, `network`,
`execute`), and may hold a pattern against what the call would touch: `run_shell(git diff *)`.
`patterns` says what a pattern matches, `gateway` acts on the judgement.

The order, from the strongest: deny rules; plan mode; dangers; ask rules; allow rules and what was
granted in the session; what the tool itself wants; the mode.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from typing import Self

from holdfast.core.tools import dotted
from holdfast.tools.base import Access, Tool, Touch
from holdfast.tools.offers import command_pattern, folder_pattern, host_pattern
from holdfast.tools.patterns import (
    Kind,
    Pattern,
    address,
    escaped,
    glob,
    kind_of,
    pieces,
)

MCP = "mcp."
CLASSES = {
    access.value: access for access in (Access.READ, Access.EDIT, Access.NETWORK, Access.EXECUTE)
}
LOOKS_ONLY = (Access.NONE, Access.READ)
SHAPE = re.compile(r"(?P<name>[^\s()]+)(?:\((?P<pattern>.*)\))?", re.DOTALL)


class Mode(Enum):
    """What happens to a call that no rule speaks of."""

    PLAN = "plan"
    """Only looking. Everything else is refused, whatever was allowed before."""
    ASK = "ask"
    """Looking is free; for everything else a person is asked."""
    ACCEPT_EDITS = "accept-edits"
    """Changing files of the workspace is free as well."""
    AUTO = "auto"
    """Everything is free but dangers. Meant for a sandbox."""
    DENY = "deny"
    """Like `ask`, where nobody can be asked: what would be asked is refused."""

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            return cls(text.strip())
        except ValueError:
            modes = [mode.value for mode in cls]
            raise ValueError(f"there is no mode '{text}'{meant(text, modes)}") from None


def meant(text: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that does not exist."""
    names = list(known)
    written = text.strip().lower().replace("_", "-")
    close = get_close_matches(written, names, n=1) or get_close_matches(text, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there are: {', '.join(names)}." if names else "."


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    """A tool, with wildcards, or a class of access. `mcp.SERVER.TOOL` for tools of servers."""
    pattern: Pattern | None = None

    def __str__(self) -> str:
        return self.name if self.pattern is None else f"{self.name}({self.pattern.text})"

    @classmethod
    def parse(cls, text: str, known: Iterable[str] = ()) -> Self:
        """The rule as people write it. With the names of the tools that are `known`, one without
        wildcards must be among them; without, tools may still come."""
        shape = SHAPE.fullmatch(text.strip())
        if shape is None:
            raise ValueError(f"'{text}' is no rule: write tool, or tool(pattern).")
        name, pattern = shape["name"], shape["pattern"]
        if pattern is not None and not pattern.strip():
            raise ValueError(
                f"the pattern of '{text}' is empty; leave the brackets out to mean all."
            )
        if name.lower() in CLASSES and name not in CLASSES:
            raise ValueError(f"'{name}' is no class of access; did you mean '{name.lower()}'?")
        names = [dotted(one) for one in known]
        if names and name not in CLASSES and not any(glob(dotted(name), one) for one in names):
            raise ValueError(f"no tool is named '{name}'{meant(name, [*CLASSES, *names])}")
        return cls(name, None if pattern is None else Pattern(pattern.strip()))

    @property
    def exact(self) -> bool:
        """It names one thing of one tool or class."""
        whole = self.pattern is not None and self.pattern.exact
        return whole and len(pieces(self.name)) == 1

    def names(self, tool: Tool, touch: Touch) -> bool:
        if self.name in CLASSES:
            return touch.access is CLASSES[self.name]
        return glob(dotted(self.name), rule_name(tool)) or (
            not self.name.startswith(MCP) and glob(dotted(self.name), dotted(tool.name))
        )

    def covers(self, tool: Tool, touch: Touch, subject: str) -> bool:
        """It allows this part of the call."""
        if not self.names(tool, touch):
            return False
        return self.pattern is None or self.pattern.covers(subject, kind_of(touch.access))

    def hits(self, tool: Tool, touch: Touch) -> bool:
        """It speaks of some part of the call."""
        if not self.names(tool, touch):
            return False
        if self.pattern is None:
            return True
        return any(self.pattern.hits(subject, kind_of(touch.access)) for subject in touch.subjects)

    def may_hit(self, tool: Tool, touch: Touch) -> bool:
        """It would speak of some part of the call, had the tool said what its parts are."""
        silent = not touch.subjects and touch.access is not Access.NONE
        return silent and self.pattern is not None and self.names(tool, touch)


def rule_name(tool: Tool) -> str:
    """What a rule calls a tool: `mcp.server.tool` for one of a server."""
    name = dotted(tool.name)
    if not tool.source:
        return name
    bare = name.removeprefix(f"{tool.source}.")
    return f"{MCP}{tool.source}.{bare if bare != name else name.split('.', 1)[-1]}"


@dataclass(frozen=True, slots=True)
class Rules:
    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    @classmethod
    def parse(
        cls,
        *,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        known: Iterable[str] = (),
    ) -> Self:
        names = tuple(known)
        lists = (tuple(Rule.parse(text, names) for text in texts) for texts in (allow, ask, deny))
        return cls(*lists)


class Ruling(Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Ruling
    by: str
    """The rule, the mode, `danger`, or the tool itself."""
    why: str
    """A sentence: for the person who is asked, or for the model that is refused."""


def judge(
    tool: Tool, touch: Touch, mode: Mode, rules: Rules, granted: tuple[str, ...] = ()
) -> Judgement:
    """Whether this call may run. `granted` are rules from the user's answers in this session."""
    judgement = by_rules(tool, touch, mode, rules, granted)
    if judgement.verdict is Ruling.ASK and mode is Mode.DENY:
        return Judgement(
            Ruling.DENY,
            "mode deny",
            f"{judgement.why} Nobody can be asked here, so it is refused. Go on without it, and "
            "tell the user what is missing.",
        )
    return judgement


def by_rules(
    tool: Tool, touch: Touch, mode: Mode, rules: Rules, granted: tuple[str, ...]
) -> Judgement:
    if rule := first(rules.deny, lambda rule: rule.hits(tool, touch)):
        return denied(f"rule {rule}", f"The user's rules forbid this: {rule}.")
    if mode is Mode.PLAN and touch.access not in LOOKS_ONLY:
        return Judgement(Ruling.DENY, "mode plan", PLAN_MODE)
    if rule := first(rules.deny, lambda rule: rule.may_hit(tool, touch)):
        return asked(f"rule {rule}", f"Nobody can tell whether {rule} forbids this call.")
    if touch.danger and not named_exactly(tool, touch, rules.allow):
        return asked("danger", sentence(touch.danger))
    if rule := first(rules.ask, lambda rule: rule.hits(tool, touch) or rule.may_hit(tool, touch)):
        return asked(f"rule {rule}", f"Your rules ask about this: {rule}.")
    if by := allowed_by(tool, touch, (*rules.allow, *valid(granted))):
        return Judgement(Ruling.ALLOW, f"rule {by}", f"Allowed by {by}.")
    if tool.approve is True:
        return asked("tool", f"{tool.name} asks about every call.")
    if tool.approve is False:
        return Judgement(Ruling.ALLOW, "tool", f"{tool.name} needs no permission.")
    return by_mode(tool, touch, mode)


def by_mode(tool: Tool, touch: Touch, mode: Mode) -> Judgement:
    free = {
        Mode.PLAN: LOOKS_ONLY,
        Mode.ASK: LOOKS_ONLY,
        Mode.ACCEPT_EDITS: (*LOOKS_ONLY, Access.EDIT),
        Mode.AUTO: tuple(Access),
        Mode.DENY: LOOKS_ONLY,
    }
    if touch.access in free[mode]:
        return Judgement(Ruling.ALLOW, f"mode {mode.value}", f"Free in the mode {mode.value}.")
    return asked(f"mode {mode.value}", f"{tool.name} {WANTS[touch.access]}.")


WANTS = {
    Access.NONE: "is called",
    Access.READ: "looks at files",
    Access.EDIT: "changes files",
    Access.NETWORK: "uses the network",
    Access.EXECUTE: "runs something",
}
PLAN_MODE = (
    "Plan mode is on: only looking is possible now, and nothing was changed. Go on reading, then "
    "present your plan; the user will leave plan mode if they want it done."
)


def asked(by: str, why: str) -> Judgement:
    return Judgement(Ruling.ASK, by, why)


def denied(by: str, why: str) -> Judgement:
    return Judgement(
        Ruling.DENY, by, f"{why} Do not try to get round it; say what you could not do."
    )


def sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text[:1].upper()}{text[1:]}."


def first(rules: Iterable[Rule], speaks: Callable[[Rule], bool]) -> Rule | None:
    return next(filter(speaks, rules), None)


def allowed_by(tool: Tool, touch: Touch, rules: Iterable[Rule]) -> str:
    """The rules that together allow every part of the call; empty if they do not."""
    named = [rule for rule in rules if rule.names(tool, touch)]
    if whole := first(named, lambda rule: rule.pattern is None):
        return str(whole)
    used: dict[str, None] = {}
    for subject in parts(touch):
        rule = first(named, lambda rule, one=subject: rule.covers(tool, touch, one))  # type: ignore[misc]
        if rule is None:
            return ""
        used[str(rule)] = None
    return ", ".join(used)


def parts(touch: Touch) -> tuple[str, ...]:
    """The subjects that must be allowed. The host of an address that is there too is none of its
    own: it is given for rules that forbid it."""
    if kind_of(touch.access) is not Kind.ADDRESS:
        return touch.subjects
    hosts = {parts.hostname for one in touch.subjects if (parts := address(one)) and parts.netloc}
    return tuple(one for one in touch.subjects if one.lower() not in hosts)


def named_exactly(tool: Tool, touch: Touch, rules: Iterable[Rule]) -> bool:
    """The user wrote down this very call, without a wildcard. Whoever did so knows the danger; a
    pattern, or an answer to another question, may have meant something else."""
    return bool(allowed_by(tool, touch, [rule for rule in rules if rule.exact]))


@lru_cache(maxsize=256)
def valid(granted: tuple[str, ...]) -> tuple[Rule, ...]:
    """A grant that cannot be read grants nothing: then the user is asked again."""
    rules = []
    for text in granted:
        try:
            rules.append(Rule.parse(text))
        except ValueError:
            continue
    return tuple(rules)


# --- what is offered with a question --------------------------------------------------------------


def suggestion(tool: Tool, touch: Touch) -> str:
    """The narrow rule that a yes for longer would make; empty where only once makes sense."""
    if touch.danger:
        return ""
    if not touch.subjects:
        return rule_name(tool)
    if tool.source:
        return suggestion_for_server(tool, touch)
    match kind_of(touch.access):
        case Kind.COMMAND:
            patterns = {command_pattern(subject) for subject in touch.subjects}
        case Kind.ADDRESS:
            patterns = {host_pattern(subject) for subject in touch.subjects}
        case Kind.PATH:
            patterns = {folder_pattern(touch.subjects)}
    if len(patterns) != 1 or not (pattern := patterns.pop()):
        return ""
    if pattern != pattern.strip():  # read again it would mean something else
        return ""
    edits = touch.access is Access.EDIT  # then it counts for all our tools that edit
    return f"{Access.EDIT.value if edits else rule_name(tool)}({pattern})"


def suggestion_for_server(tool: Tool, touch: Touch) -> str:
    """Its subjects are whatever texts the arguments hold, so there is no folder or program to go
    by: the tool as a whole, or, of one that may do anything, this very text."""
    if touch.access is not Access.EXECUTE or touch.subjects == (tool.name,):
        return rule_name(tool)
    [text, *others] = touch.subjects
    return "" if others or not text.strip() else f"{rule_name(tool)}({escaped(text.strip())})"
