"""Every example does what it says: started as its reader would, against a server that misbehaves."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from holdfast.testing.pytest_plugin import StartsServers
from holdfast.testing.script import Says, calls, says
from holdfast.testing.server import ModelServer, Received, faults

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


class Started:
    """Starts examples in a folder of their own, with a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, name: str, *arguments: str, typed: str = "", code: int = 0) -> str:
        """What it prints, when it is started with these arguments and this is typed."""
        env = {**os.environ, "HOLDFAST_HOME": str(self.folder / "home"), "PYTHONUTF8": "1"}
        done = subprocess.run(
            (sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments),
            capture_output=True,
            text=True,
            input=typed,
            cwd=self.folder,
            env=env,
            check=False,
            timeout=50,
        )
        assert (done.returncode, done.stderr) == (code, ""), done.stdout
        return done.stdout


@pytest.fixture
def started(tmp_path: Path) -> Started:
    return Started(tmp_path)


def model(server: ModelServer) -> str:
    return f"{server.url}/v1#test-model"


def said_to(received: Received) -> Sequence[tuple[str, Any]]:
    """The messages of a request behind the system prompt."""
    return [
        (each["role"], each["content"])
        for each in received.body["messages"]
        if each["role"] != "system"
    ]


def test_every_example_has_a_test_and_is_in_the_list() -> None:
    here = Path(__file__).read_text()
    listed = re.findall(r"\]\((.*?)\.py\)", (EXAMPLES / "README.md").read_text())

    examples = sorted(path.stem for path in EXAMPLES.glob("[0-9]*.py"))

    assert len(examples) >= 10
    assert [name for name in examples if f'started("{name}"' not in here] == []
    assert sorted(listed) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


def test_the_first_one_remembers_a_name(model_server: StartsServers, started: Started) -> None:
    server = model_server(faults.http(503), says("Hello, Ana!"), says("You are Ana."))

    shown = started("01_hello", model(server))

    assert shown == snapshot("""\
Hello, Ana!
You are Ana.
[answered]
""")
    assert said_to(server.chats[-1]) == snapshot(
        [
            ("user", "Hello! My name is Ana."),
            ("assistant", "Hello, Ana!"),
            ("user", "What is my name?"),
        ]
    )


def test_tools_are_called_and_their_mistakes_told(
    model_server: StartsServers, started: Started
) -> None:
    server = model_server(
        calls("price", item="tee", pieces=2),
        calls("price", item="tea", pieces="2"),
        calls("price", item="cake"),
        says("8.70 euros."),
    )

    shown = started("02_tools", model(server))

    assert shown == snapshot("""\
8.70 euros.
- price item=tee, pieces=2 failed: There is no 'tee' on the menu; there are: tea, cake.
- price item=tea, pieces=2 done: 4.8
- price item=cake done: 3.9
""")
    assert said_to(server.chats[-1]) == snapshot(
        [
            ("user", "What do two teas and a cake cost?"),
            ("assistant", ""),
            ("tool", "There is no 'tee' on the menu; there are: tea, cake."),
            ("assistant", ""),
            ("tool", "4.8"),
            ("assistant", ""),
            ("tool", "3.9"),
        ]
    )


def test_words_are_shown_as_they_come_and_taken_back_if_they_break_off(
    model_server: StartsServers, started: Started
) -> None:
    answer = says("Because air scatters blue light more than red.")
    server = model_server(faults.dropped_stream(answer, after=3), answer)

    shown = started("03_streaming", model(server))

    assert shown == snapshot("""\
Because ... (broke off, asking again)
Because air scatters blue light more than red.
[answered]
""")
    assert len(server.chats) == 2


def test_another_model_answers_when_the_first_does_not(
    model_server: StartsServers, started: Started
) -> None:
    first = model_server(then=faults.http(401))
    second = model_server(says("Lisbon."))

    shown = started("04_fallback", model(first), model(second))

    assert shown.replace(first.url, "FIRST") == snapshot("""\
answered by the fallback
- FIRST/v1#test-model gave no answer: HTTP 401: without a word
Lisbon.
""")
    assert said_to(first.chats[0]) == said_to(second.chats[0])


def test_tools_of_a_server_are_tools(model_server: StartsServers, started: Started) -> None:
    server = model_server(calls("shelf__find_books", author="calvino"), says("Two of them."))

    shown = started("05_mcp", model(server))

    assert shown == snapshot("""\
Two of them.
- shelf__find_books author=calvino
""")
    assert said_to(server.chats[-1]) == snapshot(
        [
            ("user", "Which books by Calvino do I have?"),
            ("assistant", ""),
            (
                "tool",
                """\
Invisible Cities
The Baron in the Trees\
""",
            ),
        ]
    )


def test_a_no_reaches_the_model_with_its_reason(
    model_server: StartsServers, started: Started
) -> None:
    server = model_server(
        calls("send_mail", to="ana@example.org", text="Dinner is at eight."),
        calls("send_mail", to="ben@example.org", text="Dinner is at eight."),
        says("Ana knows. Ben does not."),
    )

    shown = started("06_approvals", model(server), typed="y\nhe knows already\n")

    assert shown == snapshot("""\
send_mail {"to":"ana@example.org","text":"Dinner is at eight."}
Do it? [y]es, [a]lways in this session, or why not: send_mail {"to":"ben@example.org","text":"Dinner is at eight."}
Do it? [y]es, [a]lways in this session, or why not: \n\
Ana knows. Ben does not.
- send_mail: done
- send_mail: not run
""")
    assert said_to(server.chats[-1]) == snapshot(
        [
            ("user", "Tell ana@example.org and ben@example.org that dinner is at eight."),
            ("assistant", ""),
            ("tool", "sent to ana@example.org"),
            ("assistant", ""),
            ("tool", "Not run. The user said no: he knows already"),
        ]
    )


def test_tasks_go_on_side_by_side(model_server: StartsServers, started: Started) -> None:
    def answer(received: Received) -> Any:
        match said_to(received):
            case [("user", str(text))] if "haiku" in text:
                return says("Waves, and waves, and waves.")
            case [("user", str(text))] if "novel" in text:
                return faults.stall(says("Call me Ishmael."), after=2)
        return says("Tea.")

    server = model_server(then=answer)

    shown = started("07_background", model(server))

    assert shown == snapshot("""\
task 1 is over
task 3 is over
Tea.
task 2 is over
1. Write a haiku about the sea. [answered]
2. Write a novel about the sea. [cancelled]
3. What rhymes with sea? [answered]
""")
    assert len(server.chats) == 3


def test_a_run_whose_process_died_is_gone_on_with(
    model_server: StartsServers, started: Started
) -> None:
    def answer(received: Received) -> Says:
        match said_to(received):
            case [*_, ("tool", str(text))] if "may not have taken effect" in text:
                return calls("read_outbox")
            case [*_, ("tool", _)]:
                return says("The letter to Ana was posted.")
        return calls("post_letter", to="Ana")

    server = model_server(then=answer)

    first = started("08_resume_after_crash", model(server), "die", code=1)
    second = started("08_resume_after_crash", model(server))

    assert (first, second) == snapshot(
        (
            "",
            """\
The letter to Ana was posted.
- post_letter: unknown
- read_outbox: done
""",
        )
    )
    assert (started.folder / "outbox.txt").read_text() == "letter to Ana\n"
    assert said_to(server.chats[-1]) == snapshot(
        [
            ("user", "Post the letter to Ana, once."),
            ("assistant", ""),
            (
                "tool",
                "The process stopped while this tool was running. It may or may not have taken effect. Check before you call it again.",
            ),
            ("assistant", ""),
            ("tool", "letter to Ana\n"),
        ]
    )


def test_an_answer_is_a_value(model_server: StartsServers, started: Started) -> None:
    receipt = """{"shop": "Blue Bottle Coffee", "day": "2026-03-02", "total": 11.5,
        "items": ["2 cappuccinos", "croissant"]}"""
    server = model_server(says("It is from Blue Bottle Coffee."), says(receipt))

    shown = started("09_structured_output", model(server))

    assert shown == snapshot("""\
02.03.2026  Blue Bottle Coffee  11.50
  2 cappuccinos
  croissant
""")
    assert said_to(server.chats[-1])[1:] == snapshot(
        [
            ("assistant", "It is from Blue Bottle Coffee."),
            (
                "user",
                "Your answer does not fit the schema: it holds no JSON. Answer again, with JSON alone.",
            ),
        ]
    )


def test_one_agent_works_for_another(model_server: StartsServers, started: Started) -> None:
    def answer(received: Received) -> Says:
        asked, *rest = said_to(received)
        match asked[1], rest:
            case "Who pays the rent, and since when?", []:
                return calls("archivist", task="Who pays the rent in April?")
            case "Who pays the rent, and since when?", _:
                return says("Ben, since April.")
            case _, []:
                return calls("read_minutes", month="April")
        return says("Ben does.")

    server = model_server(then=answer)

    shown = started("10_sub_agent", model(server))

    assert shown == snapshot("""\
Ben, since April.
- archivist task=Who pays the rent in April?: Ben does.
""")
    assert said_to(server.chats[-1]) == snapshot(
        [("user", "Who pays the rent, and since when?"), ("assistant", ""), ("tool", "Ben does.")]
    )


def test_what_is_said_during_a_run_is_heard(model_server: StartsServers, started: Started) -> None:
    server = model_server(
        calls("paint", wall="north", colour="red"),
        calls("paint", wall="south", colour="blue"),
        says("Both walls are painted."),
    )

    shown = started("11_steering", model(server))

    assert shown == snapshot("""\
the north wall is red
the south wall is blue
Both walls are painted.
""")
    assert said_to(server.chats[-1]) == snapshot(
        [
            ("user", "Paint the north wall red, then the south wall."),
            ("assistant", ""),
            ("tool", "the north wall is red"),
            ("user", "The south wall in blue, please."),
            ("assistant", ""),
            ("tool", "the south wall is blue"),
        ]
    )


def test_what_a_run_did_to_files_is_taken_back(
    model_server: StartsServers, started: Started
) -> None:
    server = model_server(
        calls("read_file", path="bread.txt"),
        calls("write_file", path="bread.txt", content="1000 g flour, 700 g water, salt\n"),
        calls("write_file", path="shopping.txt", content="flour, salt\n"),
        says("Doubled."),
    )

    shown = started("12_undo_files", model(server))

    assert shown == snapshot("""\
Doubled.
  bread.txt: 1000 g flour, 700 g water, salt
  shopping.txt: flour, salt
bread.txt: restored
shopping.txt: removed
  bread.txt: 500 g flour, 350 g water, salt
""")
    assert said_to(server.chats[-1]) == snapshot(
        [
            ("user", "Double the recipe in bread.txt, and write a shopping list."),
            ("assistant", ""),
            ("tool", "500 g flour, 350 g water, salt"),
            ("assistant", ""),
            ("tool", "Overwrote bread.txt: 1 line, before 1."),
            ("assistant", ""),
            ("tool", "Created shopping.txt: 1 line."),
        ]
    )
