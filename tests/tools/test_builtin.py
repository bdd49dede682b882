"""The small tools: the time, earlier results, and finding more tools."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.tools import SideEffect, ToolSpec
from holdfast.tools.base import Access, BadArguments, Tool, ToolError, Touch
from holdfast.tools.builtin import (
    Confined,
    builtin_tools,
    described,
    lines_with,
    part,
    shell_tools,
)
from holdfast.tools.sandbox import NONE, Kind, Sandbox
from tests.tools.context import OneCall, call, text

NOON = 1_750_000_000.0
MAIL = ToolSpec(
    name="mail.send",
    description="Send a mail.\nTo anyone.",
    parameters='{"type":"object","properties":{"to":{},"cc":{}},"required":["to"]}',
)


def search(query: str) -> list[ToolSpec]:
    return [MAIL, ToolSpec(name="bare")] if "mail" in query else []


@pytest.fixture
def tools() -> dict[str, Tool]:
    tools = builtin_tools(search=search, sandbox="off", now=lambda: NOON)
    return {tool.name: tool for tool in tools}


@pytest.fixture
def here(tmp_path: Path) -> OneCall:
    return OneCall(tmp_path, results={"c7": "".join(f"line {n}\n" for n in range(3_000))})


def test_these_are_the_tools_and_what_they_may_do() -> None:
    tools = builtin_tools(search=search, sandbox="off")

    assert [(tool.name, tool.spec.effect, tool.spec.mutates) for tool in tools] == [
        ("read_file", SideEffect.READ, False),
        ("write_file", SideEffect.IDEMPOTENT, True),
        ("edit_file", SideEffect.UNSAFE, True),
        ("list_dir", SideEffect.READ, False),
        ("search_files", SideEffect.READ, False),
        ("current_time", SideEffect.READ, False),
        ("read_result", SideEffect.READ, False),
        ("find_tools", SideEffect.READ, False),
        ("fetch_url", SideEffect.READ, False),
        ("run_shell", SideEffect.UNSAFE, True),
    ]
    assert "find_tools" not in [tool.name for tool in builtin_tools()]
    assert len({name for tool in tools for name in (tool.name, *tool.spec.aliases)}) == sum(
        1 + len(tool.spec.aliases) for tool in tools
    )


# --- run_shell, as far as a sandbox can hold it ---------------------------------------------------

WEAK = Sandbox(Kind.LANDLOCK, files=True, network=False, about="it is old.")


def shelled(
    box: Sandbox, sandbox: Confined, *, network: bool = False, unconfined: bool = False
) -> tuple[list[bool | None], list[str]]:
    """How the tools want to be asked about, and what was told."""
    told: list[str] = []
    tools = shell_tools(
        box,
        sandbox=sandbox,
        network=network,
        writable=(),
        secrets=frozenset(),
        unconfined=unconfined,
        tell=told.append,
    )
    return [tool.approve for tool in tools], told


def test_a_command_that_cannot_be_held_as_it_should_is_not_offered_and_that_is_told() -> None:
    assert shelled(WEAK, "workspace-write", network=True) == ([None], [])
    assert shelled(NONE, "off") == ([None], [])
    assert shelled(WEAK, "workspace-write") == (
        [],
        [
            "run_shell is left out. The network cannot be held back: it is old. To have it, allow "
            "it to run unconfined."
        ],
    )
    assert shelled(NONE, "read-only") == (
        [],
        [
            "run_shell is left out. The command cannot be confined: this machine has no sandbox "
            "that Holdfast can use. To have it, allow it to run unconfined."
        ],
    )


def test_a_command_that_nothing_holds_is_asked_about_every_time_if_so_wished() -> None:
    assert shelled(NONE, "workspace-write", unconfined=True) == (
        [True],
        [
            "The command cannot be confined: this machine has no sandbox that Holdfast can use. "
            "run_shell is held by nothing here, and asks for every command."
        ],
    )


def test_only_the_tools_that_are_named_are_there() -> None:
    assert [tool.name for tool in builtin_tools(names=("current_time", "read_file"))] == [
        "read_file",
        "current_time",
    ]
    with pytest.raises(ValueError, match="no tool of ours is named 'red_file'; did you mean 'read"):
        builtin_tools(names=("red_file",))


def test_their_definitions_are_short(tools: dict[str, Tool]) -> None:
    sizes = [len(tool.spec.description) + len(tool.spec.parameters) for tool in tools.values()]

    assert max(sizes) < 600
    assert sum(sizes) < 3_200


def test_arguments_that_do_not_fit_are_refused_in_words(tools: dict[str, Tool]) -> None:
    for name, arguments in (
        ("read_file", {}),
        ("read_file", {"path": 3.5}),
        ("write_file", {"path": "a"}),
        ("edit_file", {"path": "a", "old": "b"}),
        ("read_result", {"call_id": "c", "offset": -1}),
    ):
        with pytest.raises(BadArguments, match="Expected: "):
            tools[name].parse(json.dumps(arguments))


async def test_the_time_is_told_in_any_zone(tools: dict[str, Tool], here: OneCall) -> None:
    clock = tools["current_time"]

    assert await text(clock, here, zone="UTC") == "Sunday 2025-06-15 15:06:40+00:00 (UTC)"
    assert await text(clock, here, zone="asia/kolkata") == (
        "Sunday 2025-06-15 20:36:40+05:30 (asia/kolkata)"
    )
    assert ":06:40" in await text(clock, here) or ":36:40" in await text(clock, here)
    with pytest.raises(ToolError, match="no time zone named 'Berlim'. Did you mean: Europe/Berlin"):
        await call(clock, here, zone="Berlim")
    with pytest.raises(ToolError, match="no time zone"):
        await call(clock, here, zone="../../etc/passwd")


async def test_an_earlier_result_is_paged_to_its_end(tools: dict[str, Tool], here: OneCall) -> None:
    whole, read, offset, note = here.results["c7"], "", 0, ""
    while not note.endswith("this is the end]"):
        page = await text(tools["read_result"], here, call_id="c7", offset=offset)
        shown, _, note = page.rpartition("\n")
        read += shown
        end = offset + len(shown)
        assert note.startswith(f"[chars {offset}-{end} of {len(whole)}; ")
        offset = end

    assert read == whole


async def test_what_is_looked_for_in_a_result_is_found_with_its_place(
    tools: dict[str, Tool], here: OneCall
) -> None:
    read = tools["read_result"]

    assert await text(read, here, call_id="c7", contains="LINE 2999") == "offset 28880: line 2999"
    many = (await text(read, here, call_id="c7", contains="line")).split("\n")
    assert (many[0], len(many)) == ("offset 0: line 0", 21)
    assert many[-1] == "[there are more: offset=150 searches on]"
    assert (await text(read, here, call_id="c7", contains="line", offset=150)).startswith(
        "offset 150: line 20\n"
    )
    assert await text(read, here, call_id="c7", contains="nowhere") == (
        "[no line from offset 0 on contains 'nowhere']"
    )
    with pytest.raises(ToolError, match="no result of a call 'c8'"):
        await call(read, here, call_id="c8")
    with pytest.raises(ToolError, match="has 28890 chars; offset 99999 is past its end"):
        await call(read, here, call_id="c7", offset=99_999)


@given(st.text(st.sampled_from("a\ud83d\ude00é\u0301👩\u200d👧\n"), min_size=1), st.integers(1, 9))
def test_pages_of_any_text_follow_each_other_and_part_no_character(text: str, limit: int) -> None:
    read, offset = "", 0
    while offset < len(text):
        page, _, note = part(text, offset, limit).rpartition("\n")
        assert page
        assert note.startswith(f"[chars {offset}-{offset + len(page)} of {len(text)}; ")
        offset += len(page)
        read += page
        assert not ("\ud800" <= page[-1] < "\udc00" <= text[offset : offset + 1] <= "\udfff")

    assert read == text


def test_an_offset_inside_a_character_goes_back_to_its_beginning() -> None:
    assert part("a\ud83d\ude00b", 2, 9) == "\ud83d\ude00b\n[chars 1-4 of 4; this is the end]"


@given(st.text("ab\n", max_size=60), st.text("ab", min_size=1, max_size=3))
def test_every_line_that_contains_it_is_found(text: str, contains: str) -> None:
    expected = [line for line in text.split("\n") if contains in line]

    found = lines_with(text, contains, 0).split("\n")

    if not expected:
        assert found == [f"[no line from offset 0 on contains '{contains}']"]
    else:
        assert [line.partition(": ")[2] for line in found[:20]] == expected[:20]


async def test_tools_that_are_found_are_described_and_wanted(
    tools: dict[str, Tool], here: OneCall
) -> None:
    find = tools["find_tools"]

    assert await text(find, here, query="send mail") == (
        "mail.send(to, cc?): Send a mail. To anyone.\nbare()"
    )
    assert here.wanted == ["mail.send", "bare"]
    assert await text(find, here, query="nothing") == (
        "[no tool fits 'nothing'; try other words for what it should do]"
    )
    assert here.wanted == ["mail.send", "bare"]


def test_the_small_tools_touch_nothing(tools: dict[str, Tool], tmp_path: Path) -> None:
    for name in ("current_time", "read_result", "find_tools"):
        assert tools[name].touch({}, tmp_path) == Touch(Access.NONE)


def test_importing_them_loads_nothing_heavy() -> None:
    heavy = ("pydantic", "mcp", "jsonschema", "tree_sitter", "aiohttp", "opentelemetry")
    code = f"import sys, holdfast.tools.builtin; print([m for m in {heavy} if m in sys.modules])"

    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
    )

    assert ran.stdout.strip() == "[]"


def test_the_reference_names_every_tool_with_its_parameters(tools: dict[str, Tool]) -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "built-in-tools.md"

    rows = page.read_text().split("## What there is")[1].split("## Where")[0].split("\n| `")[1:]

    assert [row.partition("`")[0] for row in rows] == [
        described(tool.spec).partition(":")[0] for tool in tools.values()
    ]
