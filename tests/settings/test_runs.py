"""From settings to a run: what people gave stays as it is, all else suits the window."""

import subprocess
import sys
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.tools import ToolSpec
from holdfast.models.catalog import Rule
from holdfast.models.fallback import Retries
from holdfast.models.wire import Waits
from holdfast.settings import (
    BadSettings,
    Values,
    catalog_rules,
    effective,
    load,
    retries,
    run_settings,
    waits,
)
from tests.settings.folders import Folders
from tests.settings.test_profiles import NOWHERE

GIVEN = ("output", "safety", "min_round", "evict_below", "evict_to")
CAPS = ("result", "arguments", "text", "pin", "line", "digest")
numbers = st.fixed_dictionaries(
    {},
    optional={f"budget.{name}": st.integers(1, 30_000) for name in GIVEN}
    | {f"caps.{name}": st.integers(80, 60_000) for name in CAPS},
)


@given(flags=numbers, window=st.integers(1_024, 200_000))
def test_a_number_that_was_given_is_kept_or_refused_and_never_changed(
    flags: dict[str, int], window: int
) -> None:
    loaded = Folders(NOWHERE).load(flags=flags)
    refused = ""
    try:
        run = run_settings(loaded, model="m", window=window, system="")
    except BadSettings as wrong:
        refused = str(wrong)
    if refused:
        assert any(f"the flag {name}" in refused for name in flags)
        return

    used = {f"budget.{key}": value for key, value in asdict(run.budget).items()}
    used |= {f"caps.{key}": value for key, value in asdict(run.caps).items()}
    assert {name: used[name] for name in flags} == flags


def test_a_large_result_moves_the_mark_at_which_rounds_are_evicted(folders: Folders) -> None:
    usual = run_settings(folders.load(), model="m", window=32_768, system="")
    folders.user("caps.result = 12000\n")
    wide = run_settings(folders.load(), model="m", window=32_768, system="")

    assert wide.caps.result == 12_000
    assert wide.budget.evict_below > usual.budget.evict_below


def test_a_digest_holds_a_line_and_a_line_fits_into_a_digest(folders: Folders) -> None:
    folders.user("caps.line = 2000\n")
    long = run_settings(folders.load(), model="m", window=4_096, system="").caps
    folders.user("caps.digest = 100\n")
    short = run_settings(folders.load(), model="m", window=4_096, system="").caps

    assert (long.line, long.digest, short.line, short.digest) == (2_000, 2_000, 100, 100)


def test_tools_get_the_cap_and_the_rolling_window_of_the_settings(folders: Folders) -> None:
    folders.user("[tools]\ncaps = { shell = 900 }\nkeep_last = { shell = 2 }\n")
    tools = (ToolSpec(name="shell", cap=4_000), ToolSpec(name="read", cap=10**6))

    run = run_settings(folders.load(), model="m", window=8_192, system="", tools=tools)

    assert run.tools == (
        ToolSpec(name="shell", cap=900, keep_last=2),
        ToolSpec(name="read", cap=run.caps.result),
    )


def test_every_number_in_force_is_told_with_its_origin(folders: Folders) -> None:
    folders.user("budget.output = 300\nbudget.safety = 0.01\n")

    rows = effective(folders.load(profile="localcowork"), window=8_192)

    told = {key: (value, folders.told(origin)) for key, value, origin in rows}
    keys = ["limits.rounds", "limits.tokens", "budget.window", "budget.output", "budget.safety"]
    assert {key: told[key] for key in [*keys, "caps.result", "caps.pin", "budget.evicts"]} == {
        "limits.rounds": (300, "the profile localcowork, line 31"),
        "limits.tokens": (20_000_000, "the default"),
        "budget.window": (8_192, "from the model"),
        "budget.output": (300, "the user file home/.config/holdfast/config.toml, line 1"),
        "budget.safety": (
            81,
            "0.01 of the window, from the user file home/.config/holdfast/config.toml, line 2",
        ),
        "caps.result": (
            1_500,
            "shrunk to a window of 8192 from 6000 of the profile localcowork, line 26",
        ),
        "caps.pin": (455, "scaled to a window of 8192"),
        "budget.evicts": (True, "the default"),
    }
    unasked = {key: value for key, value, _ in effective(folders.load())}
    assert (unasked["budget.window"], unasked["caps.result"]) == (None, None)


def test_by_default_models_are_asked_as_they_would_be_without_settings() -> None:
    assert (retries(Values()), waits(Values())) == (Retries(), Waits())
    assert catalog_rules(Values()) == ()


def test_what_is_said_of_models_becomes_rules_of_the_catalogue(folders: Folders) -> None:
    folders.user(
        'model = ["ollama/qwen3:8b", "http://127.0.0.1:8080/v1#tiny"]\ndialect = "json"\n'
        '[models."vllm/Our/Tune"]\nwindow = 16384\ncan = ["tools"]\n'
    )

    assert catalog_rules(folders.load().values) == (
        Rule(exact=("ollama/qwen3:8b", "qwen3:8b", "tiny"), dialect="json"),
        Rule(exact=("vllm/our/tune", "our/tune"), window=16_384, tools=True),
    )
    folders.user('[models."a/b"]\nwindows = 3\n')
    with pytest.raises(BadSettings, match=r"^\[models.\"a/b\"\]: there is no key 'windows'"):
        catalog_rules(folders.load().values)


def test_reading_settings_loads_nothing_heavy() -> None:
    code = (
        "import sys; from pathlib import Path; from holdfast.settings import load\n"
        "load(env={}, folder=Path('/nowhere'), home=Path('/nowhere'))\n"
        "heavy = {'anyio', 'aiohttp', 'pydantic', 'platformdirs', 'holdfast.models'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_what_people_set_for_a_small_window_reads_the_same_in_a_large_one() -> None:
    flags = {"budget.evict_below": 0.2, "budget.evict_to": "0.5"}
    loaded = load(flags=flags, env={}, folder=Folders(NOWHERE).project, home=Folders(NOWHERE).home)

    marks = {
        window: (run.budget.evict_below, run.budget.evict_to)
        for window in (4_000, 100_000)
        if (run := run_settings(loaded, model="m", window=window, system=""))
    }

    assert marks == {4_000: (800, 2_000), 100_000: (20_000, 50_000)}
