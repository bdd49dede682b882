"""Finding a tool by the name a model gave it, and saying so where there is none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.events import Evicted, ModelReplied, Reply, ToolsFound
from holdfast.core.limits import Settings
from holdfast.core.messages import ToolCall, ToolMessage
from holdfast.core.tokens import LOCALCOWORK
from holdfast.core.tools import ToolSpec, not_found, resolve
from holdfast.testing.script import Played, Says, calls, play, says, several, wants

NAMES = st.text(st.sampled_from("ab._ "), max_size=6)


def specs(*names: str) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(name=name) for name in names)


@pytest.mark.parametrize(
    ("asked", "there", "found"),
    [
        ("read", ("read", "write"), "read"),
        ("read", ("files.read", "files.write"), "files.read"),
        ("files__read", ("files.read",), "files.read"),
        ("files.read", ("files__read", "files__write"), "files__read"),
        ("files.read", ("files__read", "files.read"), "files.read"),
        ("read", ("read", "files.read"), "read"),
        ("files.read", ("read", "files.read"), "files.read"),
        ("read", ("files.read", "docs.read"), None),
        ("docs.read", ("files.read", "docs.read"), "docs.read"),
        ("reed", ("read",), None),
        ("", ("read",), None),
        ("read", (), None),
    ],
)
def test_a_name_means_the_tool_that_has_it_or_the_only_one_behind_a_prefix(
    asked: str, there: tuple[str, ...], found: str | None
) -> None:
    assert resolve(asked, specs(*there)) == (None if found is None else ToolSpec(name=found))


def test_a_tool_of_one_server_is_never_taken_for_that_of_another() -> None:
    assert resolve("calendar.delete", specs("files.delete", "files.list")) is None
    assert resolve("calendar__delete", specs("files__delete")) is None


@given(NAMES, st.lists(NAMES, unique=True, max_size=5))
def test_an_exact_name_always_wins_and_whatever_is_found_was_there(
    asked: str, there: list[str]
) -> None:
    found = resolve(asked, specs(*there))

    assert found is None or found in specs(*there)
    if asked in there:
        assert found == ToolSpec(name=asked)


def test_a_misspelt_name_is_answered_with_the_closest_ones() -> None:
    assert not_found("serach", specs("search", "write_file", "clock")) == (
        "There is no tool named 'serach'. Did you mean: search?"
    )


def test_an_ambiguous_name_is_answered_with_both_meanings() -> None:
    assert not_found("read", specs("files.read", "docs.read", "clock")) == (
        "There is no tool named 'read'. Did you mean: docs.read, files.read?"
    )


def test_where_nothing_is_close_some_that_exist_are_named() -> None:
    assert not_found("zzz", specs("search", "clock")) == (
        "There is no tool named 'zzz'. Some that exist: search, clock."
    )


def test_of_many_tools_only_a_dozen_are_named() -> None:
    many = specs(*(f"tool_{number}" for number in range(40)))

    assert not_found("!!!", many) == (
        "There is no tool named '!!!'. Some that exist: "
        f"{', '.join(f'tool_{number}' for number in range(12))}."
    )


def test_without_tools_nothing_is_proposed() -> None:
    assert not_found("read", ()) == (
        "There is no tool named 'read', and no tools are available now."
    )


# --- in the window --------------------------------------------------------------------------

BIG = '{"description":"' + "word " * 945 + '"}'
READ = ToolSpec(name="files.read", mutates=False)
FIND = ToolSpec(name="find_tools", mutates=False)
IDLE = tuple(ToolSpec(name=f"idle{number}", parameters=BIG) for number in range(3))


def long(call: ToolCall) -> str:
    return f"{call.arguments} and so on, word for word. " * 300


def reads(name: str, count: int) -> list[Says]:
    return [calls(name, path=f"{number}.txt") for number in range(count)]


def offered(played: Played) -> list[list[str]]:
    return [[tool.name for tool in request.tools] for request in played.requests]


def small(*tools: ToolSpec) -> Settings:
    settings = Settings.for_window(8_192, system="You are an agent.", tools=tools)
    return replace(settings, rates=LOCALCOWORK)


def test_idle_tools_are_shelved_and_come_back_when_they_are_called_or_found() -> None:
    name = READ.name
    played = play("x", reads(name, 4), {name: long}, small(READ, FIND, *IDLE))
    every, few = [name, "find_tools", "idle0", "idle1", "idle2"], [name, "find_tools"]
    assert (offered(played)[0], offered(played)[-1]) == (every, few)

    played.script += [calls("idle1")]
    played.happens(ModelReplied(5, Reply(calls=(wants(name, path="q"),)), played.tick()))
    assert offered(played)[-2:] == [few, [*few, "idle1"]]

    played.only(ToolsFound(("idle2",), played.tick()))
    played.script += [says("done")]
    played.happens(ModelReplied(7, Reply(calls=(wants(name, path="r"),)), played.tick()))
    assert offered(played)[-1] == [*few, "idle1", "idle2"]


def test_a_tool_that_is_used_by_its_short_name_is_not_idle() -> None:
    script = [*reads("read", 6), says("done")]
    played = play("x", script, {"read": long, READ.name: long}, small(READ, FIND, *IDLE))

    assert any(isinstance(event, Evicted) and event.shelved for event in played.events)
    assert all(READ.name in names for names in offered(played))


def test_where_nothing_can_be_found_again_nothing_is_shelved() -> None:
    script = [*reads(READ.name, 6), says("done")]
    played = play("x", script, {READ.name: long}, small(READ, *IDLE))

    assert {tuple(names) for names in offered(played)} == {(READ.name, "idle0", "idle1", "idle2")}


@pytest.mark.parametrize("name", ["docs.cite", "cite"])
def test_of_a_tool_that_keeps_its_last_results_exactly_those_are_whole(name: str) -> None:
    cite = ToolSpec(name="docs.cite", mutates=False, keep_last=2)
    script = [several(*(wants(name, n=n) for n in range(3))), calls(name, n=3), says("done")]
    played = play("cite", script, {"cite": long, cite.name: long}, Settings(tools=(cite,)))

    whole = [
        [m.text.startswith("{") for m in request.messages if isinstance(m, ToolMessage)]
        for request in played.requests
    ]
    # Three at once, of which two are kept: all three are shown once before one of them fades.
    assert whole == [[], [True, True, True], [False, False, True, True]]


@pytest.mark.parametrize("parameters", ["", "nonsense", "[1]", '{"a": NaN}', "\ud800"])
def test_parameters_that_no_server_could_read_are_refused_at_once(parameters: str) -> None:
    with pytest.raises(ValueError, match="the parameters of the tool read are no JSON object"):
        ToolSpec(name="read", parameters=parameters)
