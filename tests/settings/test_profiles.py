"""The profiles that come with Holdfast hold the numbers of the systems they are named after."""

from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.limits import Limits, Patience, Settings
from holdfast.core.tools import ToolSpec
from holdfast.settings import Layer, profile_names, profile_summary, prompt, run_settings
from holdfast.settings.showing import flat
from tests.settings.folders import Folders

NOWHERE = Path("/nowhere")

SEEDS: dict[str, dict[str, object]] = {
    # LocalCowork's ADR-006 and ADR-007
    "localcowork": {
        "budget.min_round": 1_500,
        "budget.safety": 768,
        "budget.output": 2_000,
        "budget.evict_below": 5_000,
        "caps.result": 6_000,
        "made_for": 32_768,
        "rates": "localcowork",
        "limits.reasks": 2,
    },
    # the constants of its code
    "localcowork-now": {
        "budget.min_round": 1_500,
        "budget.safety": 768,
        "budget.output": 2_000,
        "budget.evict_below": 5_000,
        "caps.result": 6_000,
        "limits.rounds": 10,
        "limits.reasks": 2,
        "patience.failed_rounds": 2,
        "patience.tool_failures": 3,
        "patience.repeat_told": 2,
        "patience.repeat_blocked": 2,
        "tools.choice": "retrieval",
        "tools.top": 15,
        "tools.timeout": 30.0,
        "waits.connect": 5.0,
        "waits.between": 180.0,
        "request.temperature": 0.1,
        "request.top_p": 0.2,
    },
    # DocuChat's ADR-0005
    "docuchat": {
        "limits.calls": 5,
        "limits.rounds": 5,
        "limits.reasks": 1,
        "budget.output": 600,
        "caps.result": 1_500,
        "tools.allow": ("search_docs", "open_citation"),
        "tools.keep_last.open_citation": 3,
        "tools.caps.open_citation": 1_500,
        "dialect": "actions",
        "docs.snippet": 200,
        "docs.top": 5,
        "docs.plan_steps": [2, 5],
        "request.temperature": 0.1,
    },
    # what it runs in production
    "docuchat-v2": {
        "limits.calls": 5,
        "limits.rounds": 10,
        "limits.reasks": 3,
        "budget.output": 1_000,
        "caps.result": 2_000,
        "tools.allow": ("search_docs", "open_citation"),
        "tools.keep_last.open_citation": 5,
        "tools.caps.open_citation": 2_000,
        "dialect": "json",
        "docs.snippet": 250,
    },
    # its fix for endless loops, and what became of it
    "sitebuilder": {
        "made_for": 50_000,
        "patience.repeat_stopped": 4,
        "patience.tool_failures": 5,
        "caps.line": 80 + 150,
        "caps.digest": 4_000,
    },
    # buddy's document on its loop
    "buddy": {
        "limits.rounds": 20,
        "budget.evicts": False,
        "budget.warn_at": 0.8,
        "rates": "buddy",
        "caps.result": 8_000,
        "tools.caps.run_shell": 4_000,
        "retries.busy": 3,
        "retries.first_wait": 0.25,
        "retries.longest_wait": 8.0,
        "retries.most_patience": 300.0,
        "waits.first": 120.0,
    },
    # its code
    "buddy-compact": {
        "limits.rounds": 20,
        "budget.evicts": True,
        "budget.evict_below": 0.18,
        "budget.evict_to": 0.4,
        "budget.keep_rounds": 3,
        "budget.keep_failures": 3,
        "budget.warn_at": 0.8,
        "caps.line": 180,
        "caps.digest": 24 * 180,
    },
}
ON_LIMIT = {
    "default": "conclude", "localcowork": "conclude", "localcowork-now": "conclude",
    "docuchat": "conclude", "docuchat-v2": "conclude",
    "sitebuilder": "error", "buddy": "error", "buddy-compact": "error",
}  # fmt: skip


@pytest.mark.parametrize("name", SEEDS)
def test_a_profile_has_the_numbers_of_its_system(folders: Folders, name: str) -> None:
    values = dict(flat(folders.load(profile=name, strict=True).values))

    assert {key: values[key] for key in SEEDS[name]} == SEEDS[name]


def test_what_a_limit_does_is_what_it_did_there(folders: Folders) -> None:
    found = {name: folders.load(profile=name).values.on_limit.value for name in ON_LIMIT}

    assert found == ON_LIMIT
    assert profile_names(folders.root) == sorted(ON_LIMIT)
    assert all(profile_summary(name, folders.root) for name in ON_LIMIT)


def test_the_rules_of_localcowork_come_into_the_prompt(folders: Folders) -> None:
    folders.user('instructions = "Answer in Latin."\n')

    text = prompt(folders.load(profile="localcowork").values)

    first, _, *rules = text.splitlines()
    assert first == "Answer in Latin."
    assert [rule.partition(":")[0] for rule in rules] == [
        "1. Sequential processing",
        "2. No redundant calls",
        "3. Progress tracking",
        "4. Truthfulness",
    ]


def test_the_default_profile_says_what_the_code_says(folders: Folders) -> None:
    loaded = folders.load()

    assert (loaded.values.limits, loaded.values.patience) == (Limits(), Patience())
    said = {key for key, origin in loaded.origins.items() if origin.layer is Layer.PROFILE}
    numbers = {f"limits.{name}" for name in asdict(Limits()) if name != "cost"}
    assert numbers | {"limits.dollars"} <= said


@given(window=st.integers(256, 2_000_000))
def test_the_default_profile_is_the_settings_scaled_to_the_window(window: int) -> None:
    folders = Folders(NOWHERE)
    tools = (ToolSpec(name="a", cap=100_000), ToolSpec(name="b"))

    found = run_settings(folders.load(), model="m", window=window, system="s", tools=tools)

    expected = Settings.for_window(window, system="s", tools=tools)
    assert found == replace(expected, model="m")


@given(name=st.sampled_from(sorted(ON_LIMIT)), window=st.integers(512, 2_000_000))
def test_every_profile_fits_every_window(name: str, window: int) -> None:
    loaded = Folders(NOWHERE).load(profile=name)
    tools = tuple(ToolSpec(name=each) for each in ("open_citation", "shell", "run_shell", "mail"))
    tools += (ToolSpec(name="verbose", cap=1_000_000),)

    found = run_settings(loaded, model="m", window=window, system="", tools=tools)

    assert found.budget.window == window


@pytest.mark.parametrize("window", [4_096, 8_192, 32_768, 131_072])
@pytest.mark.parametrize("name", sorted(ON_LIMIT))
def test_numbers_of_a_profile_hold_from_the_window_they_were_made_for(
    folders: Folders, name: str, window: int
) -> None:
    loaded = folders.load(profile=name)
    run = run_settings(loaded, model="m", window=window, system="")

    wanted = {key: each for key, each in asdict(loaded.values.caps).items() if each is not None}
    if window >= loaded.values.made_for:
        assert {key: getattr(run.caps, key) for key in wanted} == wanted
    else:
        assert all(getattr(run.caps, key) <= each for key, each in wanted.items())


def test_a_profile_of_the_user_builds_on_one_of_ours(folders: Folders) -> None:
    folders.profile("mine", 'extends = "docuchat"\nsummary = "Mine."\n[limits]\ncalls = 8\n')

    loaded = folders.load(profile="mine")

    assert (loaded.values.limits.rounds, loaded.values.limits.calls) == (5, 8)
    assert folders.told(loaded.origin("limits.calls")) == (
        "the profile home/.config/holdfast/profiles/mine.toml, line 4"
    )
    assert str(loaded.origin("limits.rounds")) == "the profile docuchat, line 9"
    mine = folders.home / ".config/holdfast/profiles"
    assert (profile_summary("mine", mine), "mine" in profile_names(mine)) == ("Mine.", True)


def test_every_number_of_a_profile_has_a_comment_that_tells_where_it_is_from() -> None:
    bare = []
    for file in files("holdfast").joinpath("profiles").iterdir():
        for paragraph in file.read_text(encoding="utf-8").split("\n\n"):
            explained = False
            for line in paragraph.splitlines():
                # A comment above numbers tells of all of them, up to the next empty line.
                explained = explained or line.startswith("#")
                number = line.partition(" = ")[2]
                if number[:1].isdigit() and not explained and "#" not in line:
                    bare.append(f"{file.name}: {line}")
    assert bare == []
