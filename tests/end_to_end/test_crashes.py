"""Kill the process at every write of a run, go on each time, and compare: law 6, for real."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import Says, calls, says, several, wants
from holdfast.testing.server import Received

REPOSITORY = Path(__file__).parents[2]
KILLED = -signal.SIGKILL
TOGETHER = several(wants("store", text="b"), wants("send", to="ana"))
STEPS = [
    calls("read"),
    calls("store", text="a"),
    TOGETHER,
    several(wants("read"), wants("read", again=True)),
    calls("send", to="ben"),
]


def model(received: Received) -> Says:
    """Says what comes next, by how much the request already holds."""
    rounds = sum(bool(each.get("tool_calls")) for each in received.body["messages"])
    return STEPS[rounds] if rounds < len(STEPS) else says("All done.")


def lived(url: str, folder: Path, deaths: list[list[int]]) -> list[dict[str, Any]]:
    program = [sys.executable, "-m", "tests.end_to_end.crashing", url, str(folder)]
    done = subprocess.run(
        [*program, json.dumps(deaths)], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def holds(life: dict[str, Any], whole: dict[str, Any]) -> None:
    """What must be true of a run however often its process died."""
    assert life["gapless"], life
    assert life["folds"], life
    assert (life["reason"], life["text"]) == (whole["reason"], whole["text"]), life
    assert life["outcomes"].keys() == whole["outcomes"].keys(), life
    for name in ("send ana", "send ben"):
        assert life["ran"].count(name) <= 1, life
    unknown = [call for call, outcome in life["outcomes"].items() if outcome == "unknown"]
    if not unknown:
        assert life["outcomes"] == whole["outcomes"], life
        assert set(life["ran"]) == set(whole["ran"]), life


@pytest.mark.parametrize("moment", [1, -1], ids=["after the write", "before the write"])
def test_a_run_that_is_killed_at_any_write_ends_as_if_it_had_not_been(
    model_server: StartsServers, tmp_path: Path, moment: int
) -> None:
    server = model_server(then=model)
    url = f"{server.url}/v1#test-model"
    (whole,) = lived(url, mkdir(tmp_path / "whole"), [[]])
    deaths = [[moment * at] for at in range(1, whole["writes"] + 1)]
    lives = lived(url, mkdir(tmp_path / "killed"), deaths)

    assert whole["codes"] == [0]
    assert whole["events"] >= 30
    assert {tuple(life["codes"]) for life in lives} == {(KILLED, 0)}
    for life in lives:
        holds(life, whole)


def test_a_run_that_is_killed_again_while_it_is_gone_on_with_ends_all_the_same(
    model_server: StartsServers, tmp_path: Path
) -> None:
    server = model_server(then=model)
    url = f"{server.url}/v1#test-model"
    (whole,) = lived(url, mkdir(tmp_path / "whole"), [[]])
    deaths = [[at, -2, 1] for at in range(2, whole["writes"], 3)]
    lives = lived(url, mkdir(tmp_path / "killed"), deaths)

    assert {tuple(life["codes"]) for life in lives} == {(KILLED, KILLED, KILLED, 0)}
    for life in lives:
        holds(life, whole)


def mkdir(path: Path) -> Path:
    path.mkdir()
    return path
