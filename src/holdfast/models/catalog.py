"""What is known of a model before it is asked: how much it can read, what it costs, what it can do.

The facts stand in `catalog.toml`, and a user may put rules of their own before them. What a server
says of the model it has loaded is found by `discovery`, and is worth more than anything here.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from holdfast.core.limits import Usage
from holdfast.models.spoken import Dialect

ASSUMED_WINDOW = 8_192
"""Small enough for nearly every model, and still enough for a short run with tools."""
NATIVE = "native"
DIALECTS = {NATIVE: None, **{each.name.lower(): each for each in Dialect}}
KINDS = ("exact", "prefix", "contains")
CAPABILITIES = ("tools", "vision", "reasoning", "parallel")
KEYS = (*KINDS, "window", "output", "prices", "dialect", "can", "cannot", "source")
PRICES = ("input", "output", "cached", "written")
MILLION = 1_000_000

MOST_TOKENS = 1_000_000_000
LONGEST_NAME = 500
"""Names come from servers too, and no real one is longer."""

MORE_DIGITS = re.compile(r"\.?\d")
VERSION = re.compile(r"(?<=[a-z])[-_ ](?=\d)")
QUANTISED = re.compile(
    r"""(?: [-._@] (?: gguf | mlx | awq | gptq | (?:ud-)? i?q\d\w*+ | b?f(?:p)?(?:4|8|16|32)
        | (?:nv|mx)fp4 | int[48] | \d-?bit | \d{5}-of-\d{5} ) )+ \Z""",
    re.VERBOSE,
)
DATED = re.compile(r"[-@]20\d\d-?[01]\d-?[0-3]\d\Z")


class WindowFrom(Enum):
    """Who said how large the window is. The first of them that did is believed."""

    SETTINGS = "settings"
    SERVER = "server"
    CATALOGUE = "catalogue"
    """What a model was made for. A server at home may have loaded it with far less."""
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Millionths of a dollar for a million tokens, so that all sums are whole numbers."""

    input: int
    output: int
    cached: int | None = None
    """For what the server had read before. None: no less than the rest."""
    written: int | None = None
    """For what the server keeps to read it faster the next time. None: no more than the rest."""
    long: "Prices | None" = None
    """For the whole of a request whose prompt has more tokens than `above`."""
    above: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Facts on every model whose name fits one of the patterns. None: nothing is said."""

    exact: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    window: int | None = None
    output: int | None = None
    prices: Prices | None = None
    dialect: str | None = None
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    parallel: bool | None = None
    source: str | None = None


Table: TypeAlias = Mapping[str, object]
Rules: TypeAlias = tuple[tuple[Rule, ...], ...]
"""The rules of each file, the user's file first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of one model. A capability is None where nobody said anything of it."""

    name: str
    window: int
    window_from: WindowFrom
    output: int | None = None
    """Tokens of the longest reply."""
    prices: Prices | None = None
    dialect: Dialect | None = None
    """How it must be told to call tools. None: it takes them natively."""
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    parallel: bool | None = None
    """Several calls in one reply."""
    source: str = ""
    """Where the catalogue has the window from, and of which day that is."""


class BadCatalog(ValueError):
    """A catalogue that cannot be used, in a sentence: which file, which rule, what is wrong."""


# --- finding ------------------------------------------------------------------------------------


def lookup(
    name: str, rules: Rules, *, settings: int | None = None, server: int | None = None
) -> Known:
    """All that is known of the model. `settings` and `server`: the window they give, if they do."""
    forms = Forms.of(name)
    fitting = [rule for file in rules if (rule := next(filter(forms.fit, file), None))]
    rule = filled(fitting)
    window, window_from = next(
        (given, by)
        for given, by in (
            (settings, WindowFrom.SETTINGS),
            (server, WindowFrom.SERVER),
            (rule.window, WindowFrom.CATALOGUE),
            (ASSUMED_WINDOW, WindowFrom.ASSUMED),
        )
        if given is not None
    )
    return Known(
        name=name,
        window=window,
        window_from=window_from,
        output=rule.output and min(rule.output, window),
        prices=rule.prices,
        dialect=DIALECTS[rule.dialect or NATIVE],
        tools=rule.tools,
        vision=rule.vision,
        reasoning=rule.reasoning,
        parallel=rule.parallel,
        source=next((each.source or "" for each in fitting if each.window is not None), ""),
    )


def filled(rules: Iterable[Rule]) -> Rule:
    """The first rule, with what it leaves out taken from those after it."""
    whole = Rule()
    for rule in rules:
        missing = (each.name for each in fields(whole) if getattr(whole, each.name) is None)
        whole = replace(whole, **{name: getattr(rule, name) for name in missing})
    return whole


def doubt(known: Known) -> str:
    """What people must be told of a window that nobody has confirmed; nothing if someone has."""
    way_out = (
        "Set it in the settings, or in your own catalogue of models with "
        f'exact = ["{known.name}"] and window = the tokens it can read.'
    )
    if known.window_from is WindowFrom.ASSUMED:
        return (
            f"The window of '{known.name}' is not known; {known.window} tokens are assumed. "
            f"{way_out}"
        )
    if known.window_from is WindowFrom.CATALOGUE:
        return (
            f"The server does not say what window '{known.name}' was loaded with; it was made for "
            f"{known.window} tokens, and may have been given less. {way_out}"
        )
    return ""


def cost(usage: Usage, prices: Prices, *, written: int = 0) -> int:
    """Millionths of a dollar, rounded up. `written`: the part of the prompt that the server
    kept for the next time."""
    prompt = max(0, usage.prompt)
    if prices.long is not None and prompt > prices.above:
        prices = prices.long
    cached = min(max(0, usage.cached), prompt)
    kept = min(max(0, written), prompt - cached)
    total = (
        cached * (prices.input if prices.cached is None else prices.cached)
        + kept * (prices.input if prices.written is None else prices.written)
        + (prompt - cached - kept) * prices.input
        + max(0, usage.completion) * prices.output
    )
    return -(-total // MILLION)


@dataclass(frozen=True, slots=True)
class Forms:
    """The ways in which a rule may know a name.

    `hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M`, `qwen3:8b` and `qwen3-8b.gguf` are one model: whoever
    packed it, and how tightly, changes neither its window nor what it can do.
    """

    whole: str
    base: str
    """Without the folder or provider, without the tag."""
    others: frozenset[str]
    """`base`, the same with its tag, and the same without its date."""

    @classmethod
    def of(cls, name: str) -> "Forms":
        whole = name[:LONGEST_NAME].strip().lower().replace("\\", "/")
        last, _, tag = whole.rsplit("/", 1)[-1].partition(":")
        base = QUANTISED.sub("", last)
        tag = QUANTISED.sub("", f"-{tag}")[1:]
        forms = (base, f"{base}:{tag}", DATED.sub("", base))
        return cls(plain(whole), plain(base), frozenset(map(plain, forms)))

    def fit(self, rule: Rule) -> bool:
        return (
            any(each in self.beside(each) for each in rule.exact)
            or any(begins(form, each) for each in rule.prefix for form in self.beside(each))
            or any(holds(self.whole if "/" in each else self.base, each) for each in rule.contains)
        )

    def beside(self, pattern: str) -> frozenset[str]:
        """What a pattern is compared with: the folder counts only where the pattern has one."""
        return frozenset({self.whole}) if "/" in pattern else self.others


def plain(name: str) -> str:
    """`Llama-3.1` is `llama3.1`: makers and servers do not agree on the hyphen."""
    return VERSION.sub("", name.strip().lower())


def begins(text: str, pattern: str, at: int = 0) -> bool:
    """Whether the pattern stands there, and not as a part of a longer number: `qwen3` is not 3.5."""
    if not text.startswith(pattern, at):
        return False
    return not (pattern[-1].isdigit() and MORE_DIGITS.match(text, at + len(pattern)))


def holds(text: str, pattern: str) -> bool:
    at = text.find(pattern)
    while at >= 0 and not begins(text, pattern, at):
        at = text.find(pattern, at + 1)
    return at >= 0


# --- reading ------------------------------------------------------------------------------------


def rules(extra: Path | None = None) -> Rules:
    """Our rules, and before them those in a file of the user's. Raises `BadCatalog`."""
    return (shipped(),) if extra is None else (read(extra), shipped())


@cache  # some hundredths of a second, spent when the first name is looked up
def shipped() -> tuple[Rule, ...]:
    here = files("holdfast.models").joinpath("catalog.toml")
    return parsed(here.read_text(encoding="utf-8"), "catalog.toml")


def read(path: Path) -> tuple[Rule, ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as wrong:
        raise BadCatalog(f"{path} cannot be read: {wrong.strerror or wrong}.") from wrong
    except UnicodeDecodeError as wrong:
        raise BadCatalog(f"{path} is not text in UTF-8.") from wrong
    return parsed(text, str(path))


def parsed(text: str, file: str) -> tuple[Rule, ...]:
    import tomllib  # not needed by whoever only passes values around

    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        raise BadCatalog(f"{file} is not TOML: {wrong}.") from wrong
    found: list[Rule] = []
    at = file
    try:
        check_keys(content, ("rule", "snapshot"))
        tables = content.get("rule", [])
        if not isinstance(tables, list):
            raise BadCatalog("each rule must begin with [[rule]]")
        for number, table in enumerate(tables, 1):
            at = f"{file}, rule {number}"
            found.append(rule_of(table, str(content.get("snapshot", ""))))
    except BadCatalog as wrong:
        raise BadCatalog(f"{at}: {wrong}.") from wrong
    return tuple(found)


def rule_of(table: object, day: str) -> Rule:
    if not isinstance(table, dict):
        raise BadCatalog("each rule must begin with [[rule]]")
    check_keys(table, KEYS)
    exact, prefix, contains = (tuple(map(plain, words(table, kind))) for kind in KINDS)
    if not all(patterns := exact + prefix + contains) or not patterns:
        raise BadCatalog("it fits no model or every model; name some in exact, prefix or contains")
    dialect, source = (word(table, key) for key in ("dialect", "source"))
    if dialect is not None and dialect not in DIALECTS:
        raise BadCatalog(f"dialect must be one of {listed(DIALECTS)}, not {dialect!r}")
    able = capabilities(table)
    return Rule(
        exact=exact,
        prefix=prefix,
        contains=contains,
        window=tokens(table, "window"),
        output=tokens(table, "output"),
        prices=prices_in(table),
        dialect=dialect,
        tools=able.get("tools"),
        vision=able.get("vision"),
        reasoning=able.get("reasoning"),
        parallel=able.get("parallel"),
        source=source and ", ".join(filter(None, (source, day))),
    )


def capabilities(table: Table) -> dict[str, bool]:
    able: dict[str, bool] = {}
    for key in ("can", "cannot"):
        for word in words(table, key):
            if word not in CAPABILITIES:
                raise BadCatalog(f"{key} may hold {listed(CAPABILITIES)}, not {word!r}")
            if able.setdefault(word, key == "can") != (key == "can"):
                raise BadCatalog(f"{word!r} stands both in can and in cannot")
    return able


def prices_in(table: Table) -> Prices | None:
    if (given := inner(table, "prices", (*PRICES, "long"))) is None:
        return None
    prices = flat(given, "prices")
    if (long := inner(given, "long", (*PRICES, "above"))) is None:
        return prices
    above = tokens(long, "above")
    if above is None:
        raise BadCatalog("prices.long needs above, the tokens of a prompt it begins after")
    return replace(prices, long=flat(long, "prices.long"), above=above)


def flat(table: Table, where: str) -> Prices:
    paid, answered = (price(table, key, where) for key in ("input", "output"))
    if paid is None or answered is None:
        raise BadCatalog(f"{where} needs input and output")
    cached, written = (price(table, key, where) for key in ("cached", "written"))
    return Prices(input=paid, output=answered, cached=cached, written=written)


def price(table: Table, key: str, where: str) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MILLION:
        raise BadCatalog(f"{where}.{key} must be dollars for a million tokens, not {value!r}")
    return round(value * MILLION)


def tokens(table: Table, key: str) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MOST_TOKENS:
        raise BadCatalog(f"{key} must be a whole number of tokens, not {value!r}")
    return value


def inner(table: Table, key: str, keys: Iterable[str]) -> Table | None:
    value = table.get(key)
    if value is not None and not isinstance(value, dict):
        raise BadCatalog(
            f"{key} must be a table such as {{ input = 2, output = 10 }}, not {value!r}"
        )
    if value is not None:
        check_keys(value, keys)
    return value


def word(table: Table, key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise BadCatalog(f"{key} must be a text, not {value!r}")
    return value


def words(table: Table, key: str) -> list[str]:
    value = table.get(key, [])
    values = [each for each in value if isinstance(each, str)] if isinstance(value, list) else None
    if values is None or values != value:
        raise BadCatalog(f"{key} must be a list of texts, not {value!r}")
    return values


def check_keys(table: Table, keys: Iterable[str]) -> None:
    for key in table:
        if key not in (keys := tuple(keys)):
            near = get_close_matches(key, keys, 1)
            hint = f"perhaps {near[0]!r} is meant" if near else f"there are {listed(keys)}"
            raise BadCatalog(f"there is no key {key!r}; {hint}")


def listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}"
