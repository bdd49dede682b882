"""From what people set to what a run needs, once the model and its window are known."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from holdfast.core.limits import (
    SMALLEST_CAP,
    Budget,
    Caps,
    Contradiction,
    Settings,
    result_tokens,
)
from holdfast.core.tokens import Rates
from holdfast.core.tools import ToolSpec
from holdfast.settings.loading import Loaded
from holdfast.settings.named import with_origins
from holdfast.settings.origins import BadSettings, Layer
from holdfast.settings.values import RATES, Values

SHARED = ("output", "safety", "min_round", "evict_below", "evict_to")
SHARED_OUT = tuple(f"budget.{name}" for name in SHARED)
CAPS = tuple(f"caps.{each.name}" for each in fields(Caps))


def run_settings(
    loaded: Loaded, *, model: str, window: int, system: str, tools: tuple[ToolSpec, ...] = ()
) -> Settings:
    """The settings of a run with this model. Raises `BadSettings` for numbers that cannot be.

    A number that a person gave is taken as it is. One of a profile is taken too, but shrinks in
    a window smaller than the one the profile was made for. All others suit the window.
    """
    try:
        return Fitting.of(loaded, window, tools).settings(loaded.values, model, system)
    except Contradiction as wrong:
        raise BadSettings([explained(wrong, loaded, window)]) from wrong


@dataclass(frozen=True, slots=True)
class Fitting:
    """The numbers that depend on the window."""

    budget: Budget
    caps: Caps
    tools: tuple[ToolSpec, ...]

    @classmethod
    def of(cls, loaded: Loaded, window: int, tools: tuple[ToolSpec, ...]) -> "Fitting":
        scaled = scaled_to(window)
        caps = fitting_caps(loaded, window, scaled.caps)
        fit = tuple(fitting_tool(tool, loaded, window, caps) for tool in tools)
        largest = max((tool.cap or caps.result for tool in fit), default=caps.result)
        return cls(fitting_budget(loaded, window, scaled.budget, largest), caps, fit)

    def settings(self, values: Values, model: str, system: str) -> Settings:
        rates: Rates = RATES[values.rates]
        return Settings(
            model=model,
            system=system,
            tools=self.tools,
            budget=self.budget,
            limits=values.limits,
            patience=values.patience,
            caps=self.caps,
            rates=rates,
            on_limit=values.on_limit,
            summaries=values.summaries,
        )


def scaled_to(window: int) -> Settings:
    try:
        return Settings.for_window(window)
    except Contradiction as wrong:
        raise BadSettings([f"no run fits into a window of {window} tokens: {wrong}"]) from wrong


def fitting_caps(loaded: Loaded, window: int, scaled: Caps) -> Caps:
    given = {
        each.name: shrunk(f"caps.{each.name}", value, loaded, window)
        for each in fields(Caps)
        if (value := getattr(loaded.values.caps, each.name)) is not None
    }
    caps: dict[str, int] = {each.name: getattr(scaled, each.name) for each in fields(Caps)}
    caps |= given
    if "digest" not in given:  # a long line wants a longer digest, and the other way round
        caps["digest"] = max(caps["digest"], caps["line"])
    elif "line" not in given:
        caps["line"] = min(caps["line"], caps["digest"])
    return Caps(**caps)


def shrunk(key: str, value: int, loaded: Loaded, window: int) -> int:
    """A number of a profile in a window smaller than it was made for."""
    made_for = loaded.values.made_for
    if loaded.origin(key).layer is not Layer.PROFILE or window >= made_for:
        return value
    least = SMALLEST_CAP if key.startswith(("caps.", "tools.caps.")) else 1
    return max(min(value, least), value * window // made_for)


def fitting_tool(tool: ToolSpec, loaded: Loaded, window: int, caps: Caps) -> ToolSpec:
    """With what the settings say of this tool; with a cap of its own only as far as it fits."""
    wanted = loaded.values.tools
    if tool.name in wanted.keep_last:
        tool = replace(tool, keep_last=wanted.keep_last[tool.name])
    if tool.name in wanted.caps:
        given = shrunk(f"tools.caps.{tool.name}", wanted.caps[tool.name], loaded, window)
        return replace(tool, cap=given)
    most = max(caps.result, scaled_to(window).caps.result)
    return tool if tool.cap is None or tool.cap <= most else replace(tool, cap=most)


def fitting_budget(loaded: Loaded, window: int, scaled: Budget, largest: int) -> Budget:
    """With room for one result of `largest` characters: what is not given follows what is."""
    wanted = loaded.values.budget
    given: dict[str, int] = {}
    for name in SHARED:
        value = getattr(wanted, name)
        if isinstance(value, float):
            given[name] = int(value * window)
        elif value is not None:
            given[name] = shrunk(f"budget.{name}", value, loaded, window)
    budget: dict[str, int] = {name: getattr(scaled, name) for name in SHARED} | given
    room, slack = window - budget["output"] - budget["safety"], max(1, window // 40)
    result = result_tokens(largest, RATES[loaded.values.rates])
    if "evict_below" not in given:
        budget["evict_below"] = max(budget["evict_below"], budget["min_round"] + result + slack)
    if "evict_to" not in given:
        next_best = min(budget["evict_below"] + slack, room - 1)
        budget["evict_to"] = max(1, room * 2 // 5, next_best)
    if wanted.evicts and not {"evict_below", "evict_to"} & given.keys() and room > 0:
        check_room(budget, window, room, largest, result)
    return Budget(
        window=window,
        **budget,
        keep_rounds=wanted.keep_rounds,
        keep_failures=wanted.keep_failures,
        evicts=wanted.evicts,
        warn_at=wanted.warn_at,
    )


def check_room(
    budget: Mapping[str, int], window: int, room: int, largest: int, result: int
) -> None:
    """Say it of the result where nobody gave the marks that follow from it."""
    if budget["evict_below"] >= room - 1 > budget["min_round"]:
        raise Contradiction(
            f"one result of {largest} characters (about {result} tokens) does not fit beside the "
            f"{window - room} tokens that are reserved in a window of {window}."
        )


def explained(wrong: Contradiction, loaded: Loaded, window: int) -> str:
    """The sentence with the origin of each number in it, and then the numbers that were given:
    one of them is the cause, also where only a number is named that follows from it."""
    origins = words(loaded, window)
    sentence = with_origins(str(wrong), loaded.origins, origins)
    given = [
        f"{key} ({value}, {origins.get(key, f'from {loaded.origin(key)}')})"
        for key in (*SHARED_OUT, *CAPS)
        if (value := number_of(loaded, key)) is not None and str(loaded.origin(key)) not in sentence
    ]
    return f"{sentence} Also given: {', '.join(given)}." if given else sentence


def number_of(loaded: Loaded, key: str) -> int | float | None:
    group, name = key.split(".")
    value: int | float | None = getattr(getattr(loaded.values, group), name)
    return value


def words(loaded: Loaded, window: int) -> Mapping[str, str]:
    """Where the numbers come from that the window had a part in."""
    said: dict[str, str] = {}
    if loaded.values.budget.window != window:
        said["budget.window"] = "from the model"
    for key in (*SHARED_OUT, *CAPS):
        value = number_of(loaded, key)
        if value is None:
            said[key] = f"scaled to a window of {window}"
        elif isinstance(value, float):
            said[key] = f"{value:g} of the window, from {loaded.origin(key)}"
        elif shrunk(key, value, loaded, window) != value:
            said[key] = f"shrunk to a window of {window} from {value} of {loaded.origin(key)}"
    return said
