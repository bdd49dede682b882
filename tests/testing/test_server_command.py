"""`python -m holdfast.testing.server`, as a person runs it, and the fixture, as pytest does."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from holdfast.testing.server import Kind, ModelServer
from holdfast.testing.server.__main__ import main
from holdfast.testing.server.faults import FAULTS
from tests.testing.client import CLOCK, ask, bare_socket, request_bytes

COMMAND = (sys.executable, "-m", "holdfast.testing.server")


@contextmanager
def running(*arguments: str) -> Iterator[tuple[ModelServer, "subprocess.Popen[str]"]]:
    """A process of it, and something with its address."""
    with subprocess.Popen((*COMMAND, *arguments), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = re.match(r"http://127\.0\.0\.1:(\d+) is a ", process.stdout.readline())
            assert address is not None
            yield ModelServer(port=int(address[1])), process  # not entered: it is only an address
        finally:
            process.kill()


def told_until_interrupted(process: "subprocess.Popen[str]", lines: int) -> list[str]:
    assert process.stdout is not None
    told = [process.stdout.readline().rstrip("\n") for _ in range(lines)]
    process.send_signal(signal.SIGINT)
    assert (process.stdout.read(), process.wait(10)) == ("", 130)
    return told


def test_it_helps_for_ever_and_tells_of_each_request() -> None:
    with running() as (server, process):
        ask(server)
        ask(server, tools=[CLOCK])
        ask(server, tools=[], max_tokens=0)
        ask(server, "GET", "/props/nothing")

        assert told_until_interrupted(process, 6) == snapshot(
            [
                "1  POST /v1/chat/completions (11 tokens): 200 'You said: Hello?'",
                '2  POST /v1/chat/completions (115 tokens): 200 clock({"zone":"example"})',
                "3  POST /v1/chat/completions (11 tokens): 200 'You said: Hello?'",
                "3    The list of tools is empty: leave it out.",
                "3    The answer may take 0 tokens, which is no number above 0.",
                '4  GET /props/nothing: 404 {"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}',
            ]
        )


def test_it_tells_of_a_stall_when_it_begins_and_when_it_is_over() -> None:
    with running("--fault", "stall") as (server, process):
        assert process.stdout is not None
        with bare_socket(server, request_bytes(stream=True)):
            begun = process.stdout.readline()

        assert [begun, *told_until_interrupted(process, 1)] == snapshot(
            ["1  POST /v1/chat/completions (11 tokens): 200 stall\n", "1    The client hung up."]
        )


def test_it_plays_its_faults_and_then_says_what_it_was_told_to() -> None:
    arguments = "--kind vllm --window 512 --model qwen --key s3cret --say Aye"
    with running(*arguments.split(), "--fault", "busy", "--fault", "no-usage") as (server, process):
        key = {"Authorization": "Bearer s3cret"}
        (entry,) = ask(server, "GET", "/v1/models", headers=key).json["data"]
        answers = [ask(server, model="qwen", headers=key) for _ in range(3)]
        wrong = ask(server)

        told = told_until_interrupted(process, 5)

    assert (entry["id"], entry["max_model_len"]) == ("qwen", 512)
    assert [each.status for each in answers] == [429, 200, 200]
    assert ["usage" in each.json for each in answers] == [False, False, True]
    assert answers[1].json["choices"][0]["message"]["content"] == "Aye"
    assert wrong.status == 401
    assert [line.partition(": ")[2] for line in told[1:4]] == [
        "429 busy",
        "200 no-usage",
        "200 'Aye'",
    ]


def test_the_list_names_every_fault_with_its_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(FAULTS)
    assert [line for line in lines if not re.search(r"  [A-Z2-5`].*\.$", line)] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fault", "nonsense"], "invalid choice: 'nonsense'"),
        (["--kind", "nonsense"], "invalid choice: 'nonsense'"),
        (["--window", "many"], "invalid int value: 'many'"),
    ],
)
def test_what_it_does_not_know_it_says(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)

    assert left.value.code == 2
    assert words in capsys.readouterr().err


def test_every_kind_can_be_run() -> None:
    help_ = subprocess.run((*COMMAND, "--help"), capture_output=True, text=True, check=True).stdout

    assert [kind.value for kind in Kind if kind.value not in help_] == []


# --- the fixture ---------------------------------------------------------------------------------

TESTS = """
import json
import sys
import urllib.request

import pytest
from holdfast.testing.script import says


def ask(server, **fields):
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
    request = urllib.request.Request(
        server.url + "/v1/chat/completions",
        json.dumps({**body, **fields}).encode(),
        {"Content-Type": "application/json"},
    )
    return urllib.request.urlopen(request, timeout=5).status


def test_nothing_is_loaded_before_the_fixture_is_used():
    assert "anyio" not in sys.modules
    assert "holdfast.testing.server" not in sys.modules


def test_good(model_server):
    server, other = model_server(says("Hello.")), model_server(says("Hello."))
    assert (ask(server), ask(other)) == (200, 200)


def test_bad(model_server):
    assert ask(model_server(says("Hello.")), tools=[]) == 200


def test_bad_on_purpose(model_server):
    server = model_server(says("Hello."))
    server.expect_complaints()
    assert ask(server, tools=[]) == 200


def test_bad_and_wrong(model_server):
    assert ask(model_server(says("Hello.")), tools=[]) == 404


def test_closed(model_server):
    global closed
    closed = model_server(says("Hello."))


def test_after_closed():
    with pytest.raises(OSError):
        ask(closed)
"""


def test_the_fixture_closes_its_servers_and_fails_a_test_that_sends_bad_requests(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    plugins = ("-p", "no:cacheprovider", "-p", "holdfast.testing.pytest_plugin")
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-rA", "--tb=short", *plugins, str(tmp_path)),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        timeout=60,
    )

    outcomes = re.findall(r"^(PASSED|FAILED|ERROR) test_it.py::(\w+)", done.stdout, re.MULTILINE)
    assert {name: outcome for outcome, name in outcomes} == {
        "test_nothing_is_loaded_before_the_fixture_is_used": "PASSED",
        "test_good": "PASSED",
        "test_bad": "FAILED",
        "test_bad_on_purpose": "PASSED",
        "test_bad_and_wrong": "FAILED",
        "test_closed": "PASSED",
        "test_after_closed": "PASSED",
    }
    assert (
        "A strict server would not have taken what was sent:\n"
        "- The list of tools is empty: leave it out.\n"
    ) in done.stdout
    section = "Captured complaints of the model server call"
    assert re.findall(rf"_ (\w+) _|-( {section} )-", done.stdout) == [
        ("test_bad", ""),
        ("test_bad_and_wrong", ""),
        ("", f" {section} "),
    ]
