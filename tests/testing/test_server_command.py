"""`python -m holdfast.testing.server`, as a person runs it, and the fixture, as pytest does."""

import errno
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from holdfast.testing.printing import printing
from holdfast.testing.server import Kind, ModelServer
from holdfast.testing.server.__main__ import main
from holdfast.testing.server.faults import FAULTS, MAKERS, sentence
from tests.testing.client import CLOCK, ask, bare_socket, request_bytes

COMMAND = (sys.executable, "-m", "holdfast.testing.server")


@contextmanager
def running(*arguments: str) -> Iterator[tuple[ModelServer, "subprocess.Popen[str]"]]:
    """A process of it, and something with its address."""
    with subprocess.Popen((*COMMAND, *arguments), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = re.match(r"http://127\.0\.0\.1:(\d+) is an? ", process.stdout.readline())
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

    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    families = {name.removesuffix("..."): rest for name, rest in lines if name.endswith("...")}
    variants = [name + each for name, rest in families.items() for each in rest.split(", ")]
    assert {name: rest for name, rest in lines if not name.endswith("...")} == {
        name: sentence(name) for name in MAKERS
    }
    assert sorted({*MAKERS, *variants}) == sorted({*MAKERS, *FAULTS})
    assert families["call-as-text-"] == "fenced, tagged, tool-call, bare, pythonic"


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("reasoning", "reasoning-reasoning-content"),
        ("broken-arguments", "broken-arguments-doubled-quotes"),
        ("call-as-text", "call-as-text-fenced"),
    ],
)
def test_a_name_that_stands_for_several_faults_takes_the_first(name: str, first: str) -> None:
    with running("--fault", name) as (server, process):
        ask(server, tools=[CLOCK])

        (told,) = told_until_interrupted(process, 1)

    assert told.partition(": ")[2] == f"200 {first}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--fault", "bussy"],
            "--fault: there is no fault 'bussy'; did you mean: busy? --list shows all\n",
        ),
        (
            ["--fault", "nonsense"],
            "--fault: there is no fault 'nonsense'; --list shows all\n",
        ),
        (["--kind", "nonsense"], "invalid choice: 'nonsense'"),
        (["--window", "many"], "must be a whole number of at least 1, and not many"),
        (["--window", "0"], "must be a whole number of at least 1, and not 0"),
        (["--window", "-5"], "must be a whole number of at least 1, and not -5"),
        (["--port", "99999"], "must be a whole number from 0 to 65535, and not 99999"),
        (["--port", "-1"], "must be a whole number from 0 to 65535, and not -1"),
    ],
)
def test_what_it_does_not_know_it_says(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)

    assert left.value.code == 2
    assert words in capsys.readouterr().err


def test_a_port_that_is_taken_is_said_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            (*COMMAND, "--port", str(port)), capture_output=True, text=True, timeout=30
        )

    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"Port {port} is taken; choose another, or leave --port out.\n",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_a_text_that_cannot_be_written_is_said_to_be() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            (*COMMAND, "--list"), stdout=full, stderr=subprocess.PIPE, text=True, timeout=30
        )

    assert (done.returncode, done.stderr) == (
        1,
        "holdfast: could not write: [Errno 28] No space left on device\n",
    )


def test_an_error_that_is_no_failed_write_is_not_called_one() -> None:
    def show() -> int:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    with pytest.raises(ConnectionRefusedError):
        printing(show)


def test_the_help_names_every_kind_and_the_defaults() -> None:
    help_ = subprocess.run((*COMMAND, "--help"), capture_output=True, text=True, check=True).stdout

    assert [kind.value for kind in Kind if kind.value not in help_] == []
    assert re.findall(r"\(default: (\S+)\)", help_) == ["llama.cpp", "4096", "test-model"]


@pytest.mark.parametrize(
    ("article", "kind"), [("an", "ollama"), ("an", "lm-studio"), ("a", "vllm")]
)
def test_it_says_what_kind_it_is(article: str, kind: str) -> None:
    with subprocess.Popen((*COMMAND, "--kind", kind), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()

    assert line.partition(" ")[2] == f"is {article} {kind} server. Ctrl-C ends it.\n"


# --- the fixture ---------------------------------------------------------------------------------

TESTS = """
import json
import sys
import urllib.request

import pytest
from holdfast.testing.script import says


def ask(server, **fields):
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
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
    server, other = model_server(says("Hello.")), model_server(says("Hello."), kind="llama.cpp")
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


def pytest_says(folder: Path, *arguments: str) -> str:
    plugins = ("-p", "no:cacheprovider", "-p", "holdfast.testing.pytest_plugin")
    return subprocess.run(
        (sys.executable, "-m", "pytest", *arguments, *plugins, str(folder)),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        timeout=60,
    ).stdout


def test_pytest_says_of_the_fixture_that_it_judges(tmp_path: Path) -> None:
    said = pytest_says(tmp_path, "--fixtures")

    _, _, about = said.partition("model_server -- ")
    assert "and judges the test:" in about
    assert "`server.expect_complaints()`" in about


def test_the_fixture_closes_its_servers_and_fails_a_test_that_sends_bad_requests(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    said = pytest_says(tmp_path, "-rA", "--tb=short")

    outcomes = re.findall(r"^(PASSED|FAILED|ERROR) test_it.py::(\w+)", said, re.MULTILINE)
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
        "If it is sent on purpose, say so in the test: server.expect_complaints()\n"
    ) in said
    section = "Captured complaints of the model server call"
    assert re.findall(rf"_ (\w+) _|-( {section} )-", said) == [
        ("test_bad", ""),
        ("test_bad_and_wrong", ""),
        ("", f" {section} "),
    ]
