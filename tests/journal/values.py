"""Any value of a type, made from its hints: what a codec must be able to keep."""

from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType
from typing import Any, cast, get_args, get_type_hints

from hypothesis import strategies as st

from holdfast.core.events import Event
from holdfast.core.limits import Limits, Settings
from holdfast.core.tools import ToolSpec

any_text = st.text(st.characters() | st.sampled_from("\ud83d\udc00\0\n{}[]\"'🙂中$"), max_size=30)
long_text = st.builds(lambda text, times: text * times, any_text, st.sampled_from((1, 1, 1, 2_000)))
names = st.text("abcdefgh", min_size=1, max_size=12)
any_tool = st.builds(
    ToolSpec,
    name=names,
    description=long_text,
    parameters=st.sampled_from(("{}", '{"type": "object"}')),
    aliases=st.lists(names, max_size=2).map(tuple),
)
any_settings = st.builds(
    lambda window, system, tools, rounds: Settings(
        system=system,
        tools=Settings.for_window(window, tools=tuple({t.name: t for t in tools}.values())).tools,
        budget=Settings.for_window(window).budget,
        caps=Settings.for_window(window).caps,
        limits=Limits(rounds=rounds),
    ),
    st.sampled_from((2_048, 32_768)),
    long_text,
    st.lists(any_tool, max_size=3),
    st.integers(1, 9),
)
GIVEN: dict[Any, st.SearchStrategy[Any]] = {
    str: long_text,
    int: st.integers(-(2**70), 2**70),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    NoneType: st.none(),
    Settings: any_settings,
    ToolSpec: any_tool,
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    if kind in GIVEN:
        return GIVEN[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(
            cast(type, kind), **{field.name: values(hints[field.name]) for field in fields(kind)}
        )
    inner = get_args(kind)
    if inner[1:] == (...,):
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    return st.one_of(*map(values, inner))


any_event: st.SearchStrategy[Event] = st.one_of(*(values(kind) for kind in get_args(Event)))
