"""The public names: all of them are there, and the pages name what there is."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import pytest

import holdfast
from holdfast import Agent, Result, Stream, Task

ROOT = Path(__file__).parent.parent
HEAVY = ("aiohttp", "jsonschema", "mcp", "opentelemetry", "pydantic", "tree_sitter")


def test_every_public_name_is_there_and_knows_its_module() -> None:
    block = re.search(r"if TYPE_CHECKING:\n(.*?)\n\n__version__", source_of_init(), re.DOTALL)
    assert block is not None
    typed = re.findall(r"\b(\w+)\b(?=,|\)|$)", re.sub(r"\w+ as ", "", block[1]), re.MULTILINE)

    assert sorted(set(typed)) == sorted(holdfast.__all__)
    for name in holdfast.__all__:
        assert getattr(holdfast, name).__module__ != "holdfast"
    assert set(holdfast.__all__) < set(dir(holdfast))


def test_a_name_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(AttributeError, match="module 'holdfast' has no attribute 'Agnt'"):
        holdfast.Agnt  # type: ignore[attr-defined] # noqa: B018


def test_importing_the_package_loads_no_module_of_ours_and_an_agent_nothing_heavy() -> None:
    code = f"""
import sys
before = set(sys.modules)
import holdfast
new = set(sys.modules) - before
print(*sorted(name for name in new if name.startswith("holdfast") or name == "typing"))
from holdfast import *
print(*(name for name in {HEAVY} if name in sys.modules))
"""
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["holdfast", ""]


def source_of_init() -> str:
    return (ROOT / "src/holdfast/__init__.py").read_text()


# --- the page about them ----------------------------------------------------------------------------


def rows(heading: str) -> list[str]:
    """The names in the first column of the tables under a heading."""
    page = (ROOT / "docs/reference/agent.md").read_text()
    part = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)[(`]", cell)]


def public(names: Iterable[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_page_names_every_parameter_and_member_of_an_agent() -> None:
    parameters = public(inspect.signature(Agent).parameters)

    assert sorted(rows("Agent")) == sorted([*parameters, *public(vars(Agent))])


def test_the_page_names_every_member_of_results_streams_and_tasks() -> None:
    task = {field.name for field in fields(Task)} | {*vars(Task)}

    assert sorted(rows("Result")) == sorted(public(vars(Result)))
    assert sorted(rows("Stream")) == sorted(public(vars(Stream)))
    assert sorted(rows("Task")) == sorted(public(task) - {"run"})
