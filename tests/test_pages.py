"""Pages whose examples take a whole agent to be tried: what they say is what happens."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Agent, SqliteJournal, builtin_tools, load_settings, tool
from holdfast.core.effects import CallModel
from holdfast.core.events import ModelReplied, Reply, UserSpoke, WantedCall
from holdfast.core.limits import Settings
from holdfast.core.machine import step
from holdfast.core.state import NEW
from holdfast.settings import Loaded
from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import calls, says
from holdfast.testing.server import ModelServer
from holdfast.tools.permissions import Rules
from holdfast.tools.undo import Fate

HOW_TO = Path(__file__).parent.parent / "docs/how-to"


def blocks(page: str, kind: str) -> list[str]:
    found: list[str] = re.findall(rf"```{kind}\n(.*?)```", (HOW_TO / page).read_text(), re.DOTALL)
    return found


def defined_by(page: str) -> dict[str, Any]:
    """What the examples of a page define, run one after the other."""
    known: dict[str, Any] = {}
    for example in blocks(page, "python"):
        exec(compile(example, page, "exec"), known)
    return known


def name_of(server: ModelServer) -> str:
    return f"{server.url}/v1#test-model"


def told(folder: Path, **flags: object) -> Loaded:
    return load_settings(flags=flags, env={}, folder=folder, home=folder)


# --- go on, or take it back -------------------------------------------------------------------


@tool
def pay(name: str) -> str:
    "Pay somebody."
    return f"{name} is paid"


async def leave_open(journal: SqliteJournal) -> str:
    """A session as a crash leaves it: the model wants to pay, and nothing has been started."""
    begun = step(NEW, UserSpoke("Pay Ana.", 1.0, Settings(tools=(pay.spec,))))
    (asked,) = (effect for effect in begun.effects if isinstance(effect, CallModel))
    wanted = Reply(calls=(WantedCall("pay", '{"name": "Ana"}'),))
    replied = step(begun.state, ModelReplied(asked.ask, wanted, 2.0))
    book = await journal.create()
    await book.append((*begun.events, *replied.events), replied.state).wait()
    await book.close()
    return book.id


@pytest.mark.parametrize(
    ("rules", "outcome"),
    [
        ({}, "Ana is paid"),
        ({"permissions.deny": ["pay"]}, "Not run. The user's rules forbid this: pay."),
    ],
)
async def test_runs_that_a_crash_left_open_are_found_and_gone_on_with(
    model_server: StartsServers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rules: dict[str, object],
    outcome: str,
) -> None:
    go_on: Callable[[Agent], Awaitable[None]] = defined_by("resume-and-undo.md")["go_on"]
    server = model_server(says("So it is."), window=16_384)
    journal = SqliteJournal(tmp_path / "journal.sqlite")
    session = await leave_open(journal)
    agent = Agent(name_of(server), tools=[pay], journal=journal, settings=told(tmp_path, **rules))

    await go_on(agent)
    await go_on(agent)

    assert capsys.readouterr().out == "Pay Ana. - So it is.\n"
    assert server.chats[-1].body["messages"][-1]["content"].startswith(outcome)
    assert (await journal.about(session)).status == "answered"
    await journal.aclose()


async def test_what_is_said_after_a_crash_is_heard_before_anything_is_run(
    model_server: StartsServers, tmp_path: Path
) -> None:
    server = model_server(says("Nothing was paid."), window=16_384)
    journal = SqliteJournal(tmp_path / "journal.sqlite")
    session = await leave_open(journal)

    await Agent(name_of(server), tools=[pay], journal=journal).run("Never mind.", session=session)

    not_run, words = (each["content"] for each in server.chats[-1].body["messages"][-2:])
    assert not_run.startswith("Not run: the program stopped before this call began")
    assert words == "Never mind."
    await journal.aclose()


async def test_what_a_run_did_to_files_is_taken_back_once(
    model_server: StartsServers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take_back: Callable[[Agent, str], Awaitable[None]]
    take_back = defined_by("resume-and-undo.md")["take_back"]
    server = model_server(
        calls("write_file", path="bread.txt", content="flour"), says("Done."), window=16_384
    )
    journal = SqliteJournal(tmp_path / "journal.sqlite")
    work = tmp_path / "work"
    work.mkdir()
    agent = Agent(
        name_of(server),
        tools=builtin_tools(),
        workspace=work,
        journal=journal,
        approve=lambda question: True,
    )
    run = await agent.run("Write the recipe down.")
    assert (work / "bread.txt").read_text() == "flour"

    await take_back(agent, run.session_id)
    await take_back(agent, run.session_id)

    assert capsys.readouterr().out == "bread.txt - removed\nbread.txt - already as it was\n"
    assert [*work.iterdir()] == []
    await journal.aclose()


def test_the_page_names_every_fate_of_a_file() -> None:
    page = (HOW_TO / "resume-and-undo.md").read_text()
    rows = re.findall(r"^\| `([a-z: ]+)` \|", page, re.MULTILINE)

    assert rows == [fate.value for fate in Fate]


# --- say what a model may do ------------------------------------------------------------------


def test_the_rules_on_the_page_are_settings_and_can_be_read(tmp_path: Path) -> None:
    (text,) = blocks("permissions.md", "toml")
    given = tomllib.loads(text)
    lists = {f"permissions.{name}": rules for name, rules in given["permissions"].items()}

    loaded = told(tmp_path, permission_mode=given["permission_mode"], **lists)

    said = loaded.values.permissions
    rules = Rules.parse(allow=said.allow, ask=said.ask, deny=said.deny)
    assert [len(each) for each in (rules.allow, rules.ask, rules.deny)] == [3, 1, 3]


# --- choose a model ---------------------------------------------------------------------------


async def test_a_model_is_asked_as_the_page_says(
    model_server: StartsServers, capsys: pytest.CaptureFixture[str]
) -> None:
    ask: Callable[[str, str], Awaitable[str]] = defined_by("choose-a-model.md")["ask"]
    server = model_server(says("It holds seaweed to a rock."))

    assert await ask(name_of(server), "What is a holdfast?") == "It holds seaweed to a rock."

    assert capsys.readouterr().out.startswith("4096 ")


# --- what stands in for a model ---------------------------------------------------------------


def test_the_first_program_works_with_what_stands_in_for_a_model(tmp_path: Path) -> None:
    readme = (HOW_TO.parent.parent / "README.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (command,) = re.findall(r"^\$ .venv/bin/python (-m holdfast.testing.server .*)$", readme, re.M)
    arguments = command.replace("11434", "0").split()  # a free port, for the sake of the neighbours
    with subprocess.Popen(
        (sys.executable, *arguments), stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[0]
            env = {**os.environ, "HOLDFAST_HOME": str(tmp_path), "OLLAMA_HOST": url}
            done = subprocess.run(
                (sys.executable, "-c", program),
                stdout=subprocess.PIPE,
                text=True,
                env=env,
                check=True,
                timeout=50,
            )
        finally:
            server.terminate()

    assert done.stdout == (
        "The tool returned: It is sunny in example. answered\n- weather city=example done\n"
    )
