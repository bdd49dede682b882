"""Which tools a model is told of, where there are many: all, a list, or those that fit the task.

Definitions cost tokens, and small models lose their way among them: with 83 tools a model of 1.2B
parameters chose the right one 36 times in 100, with 15 of them 78 times. A model of 24B got worse
with the same filter, 72 instead of 80, since now and then the right tool is filtered away
(LocalCowork's measurements). So it is a choice, and a tool that is left out is only shelved:
`find_tools` brings it back. What is shelved later, in a window that gets too full, is `eviction`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import log

from holdfast.core.jsontext import json_object
from holdfast.core.tokens import Gauge, size_of_tools
from holdfast.core.tools import ToolSpec, dotted
from holdfast.tools.patterns import glob

FIND_TOOLS = "find_tools"
STAYS = (FIND_TOOLS, "read_result")
"""Tools with which a model helps itself to what was left out; they are always offered."""


class Way(Enum):
    FLAT = "flat"
    """All of them."""
    LISTED = "listed"
    """Those whose names are on a list."""
    FITTING = "fitting"
    """Those whose words are most like the task's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    way: Way = Way.FLAT
    names: tuple[str, ...] = ()
    """Tools that are offered in any case, with wildcards: `files.*`."""
    most: int = 15
    """How many the fitting ones are. LocalCowork found 15 best for its small model: with 10 the
    right tool is missing too often, with 20 the model errs more."""
    above: int = 30
    """With this many tools or fewer all are offered: there even small models choose better than
    words do."""

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"most is {self.most}; at least one tool must be offered.")
        if self.way is Way.LISTED and not self.names:
            raise ValueError("a list of tools without names would offer none; name some.")


SMALL = Choice(way=Way.FITTING)
"""For models below about 8B parameters."""
LARGE = Choice(way=Way.FLAT)


@dataclass(frozen=True, slots=True)
class Chosen:
    offered: tuple[ToolSpec, ...]
    """In the order in which they came: a server can keep what it has read of the definitions."""
    shelved: tuple[ToolSpec, ...] = ()
    tokens: int = 0
    """Of the definitions that are offered."""

    @property
    def shelved_names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.shelved)


def chosen(
    tools: Iterable[ToolSpec],
    *,
    plan: Choice,
    task: str,
    most_tokens: int | None = None,
    gauge: Gauge | None = None,
) -> Chosen:
    """The tools to begin a run with. Whatever the plan, they take no more than `most_tokens`,
    those that stay in any case apart."""
    known, gauge = tuple(tools), gauge or Gauge()
    wanted = {tool.name for tool in preferred(known, plan, task)}
    stays = {tool.name for tool in known if tool.name in STAYS}
    room = most_tokens
    if room is not None:
        room -= cost([tool for tool in known if tool.name in stays], gauge)
        named = [tool for tool in known if is_listed(tool, plan.names)]
        best = [*named, *ranked(task, known)]
        wanted = fitting(dict.fromkeys(tool for tool in best if tool.name in wanted), room, gauge)
    keep = wanted | stays
    offered = tuple(tool for tool in known if tool.name in keep)
    shelved = tuple(tool for tool in known if tool.name not in keep)
    return Chosen(offered, shelved, cost(offered, gauge))


def preferred(known: tuple[ToolSpec, ...], plan: Choice, task: str) -> Iterable[ToolSpec]:
    listed = [tool for tool in known if is_listed(tool, plan.names)]
    match plan.way:
        case Way.FLAT:
            return known
        case Way.LISTED:
            return listed
        case Way.FITTING:
            can_be_found = any(tool.name == FIND_TOOLS for tool in known)
            if len(known) <= plan.above or not can_be_found:
                return known
            others = [tool for tool in ranked(task, known) if tool not in listed]
            return [*listed, *others[: plan.most]]


def fitting(tools: Iterable[ToolSpec], room: int, gauge: Gauge) -> set[str]:
    """The first ones that fit, the best first; one that is too large lets smaller ones pass."""
    names = set[str]()
    for tool in tools:
        size = cost((tool,), gauge)
        if size <= room:
            room -= size
            names.add(tool.name)
    return names


def cost(tools: Iterable[ToolSpec], gauge: Gauge) -> int:
    return gauge.weigh(size_of_tools(tools))


def is_listed(tool: ToolSpec, names: Iterable[str]) -> bool:
    return any(glob(dotted(name), dotted(tool.name)) for name in names)


def search_tools(query: str, tools: Iterable[ToolSpec], limit: int = 10) -> list[ToolSpec]:
    """The tools that have words of the query, the most fitting first."""
    known = tuple(tools)
    marks = scores(query, known)
    found = [tool for tool in ranked(query, known) if marks[tool.name] > 0]
    return found[:limit]


# --- how well words fit -------------------------------------------------------------------------

NAME, DESCRIPTION, PARAMETERS = 3, 1, 1
"""How much a word counts by where it stands. `lab/bench/tool_choice.py` finds the right tool among
the first 15 of 83 for 94 of 100 prompts, and hardly depends on these."""
SATURATION, LENGTH = 1.2, 0.5
"""The constants of BM25: how soon a repeated word stops counting, and how much a long text is
held against it."""
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+|\d+")
ENDINGS = re.compile(r"(?<=[a-z]{3})(?:ations?|ators?|ates?|ing|ions?|ed|ers?|es|e|s|y)$")
COMMON = frozenset(
    """a an the my me i is are was were be to of in on at for from with by and or not it its this
    that these those what which who how do does can could please you your we our us as into all any
    some if then than there""".split()
)
ALIKE = (
    "folder directory dir", "delete remove erase trash", "image picture photo screenshot",
    "list show display", "create make new add", "find search look locate", "copy duplicate",
    "rename move", "mail email message inbox", "event appointment meeting calendar",
    "task todo reminder", "spreadsheet csv table excel", "pdf document doc", "shell command terminal",
    "speech audio recording voice transcribe", "read open get fetch", "write save store",
    "summary summarize digest brief", "secret password key credential api", "compare diff difference",
    "memory ram", "cpu processor", "disk storage drive", "url link web site page", "merge combine join",
    "kill stop terminate end", "schedule book plan", "text content", "size metadata modified",
)  # fmt: skip
"""Words that people use for what tools call otherwise. A word found this way counts half."""


def ranked(query: str, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    marks = scores(query, tools)
    return sorted(tools, key=lambda tool: -marks[tool.name])  # stable: equals keep their order


def scores(query: str, tools: Sequence[ToolSpec]) -> dict[str, float]:
    """BM25 over the words of name, description and parameters."""
    texts = {tool.name: weighed(tool) for tool in tools}
    if not texts:
        return {}
    having = Counter(word for words in texts.values() for word in dict(words))
    usual = sum(sum(dict(words).values()) for words in texts.values()) / len(texts)
    wanted = query_words(query)
    marks: dict[str, float] = {}
    for name, words in texts.items():
        counts = dict(words)
        long = 1 - LENGTH + LENGTH * sum(counts.values()) / usual
        marks[name] = sum(
            weight
            * log(1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5))
            * (count * (SATURATION + 1) / (count + SATURATION * long))
            for word, weight in wanted.items()
            if (count := counts.get(word, 0))
        )
    return marks


@lru_cache(maxsize=1024)
def weighed(tool: ToolSpec) -> tuple[tuple[str, int], ...]:
    counts = Counter[str]()
    properties = json_object(tool.parameters).get("properties")
    names = " ".join(properties) if isinstance(properties, dict) else ""
    for text, weight in ((tool.name, NAME), (tool.description, DESCRIPTION), (names, PARAMETERS)):
        for word in stems(text):
            counts[word] += weight
    return tuple(counts.items()) or (("", 1),)


def stems(text: str) -> list[str]:
    words = (word.lower() for word in WORDS.findall(text))
    return [stem(word) for word in words if word not in COMMON]


def stem(word: str) -> str:
    """Enough that `files` finds `file` and `extraction` finds `extract`."""
    return ENDINGS.sub("", ENDINGS.sub("", word))  # twice: `meetings` is `meeting` is `meet`


def query_words(query: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for word in stems(query):
        weights[word] = 1.0
        for other in alike().get(word, ()):
            weights.setdefault(other, 0.5)
    return weights


@lru_cache(maxsize=1)
def alike() -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    for line in ALIKE:
        group = frozenset(stems(line))
        for word in group:
            groups[word] = groups.get(word, frozenset()) | group
    return groups
