"""The tool `run_shell`, with real processes; whether they are gone is asked of the system itself."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from holdfast.core.tools import Keep, SideEffect
from holdfast.tools.base import Access, BadArguments, Output, Tool, ToolError, Touch
from holdfast.tools.environment import cleaned_environment
from holdfast.tools.processes import Kept, cleaned
from holdfast.tools.sandbox import NONE, Kind, NoSandbox, found
from holdfast.tools.shell import run_shell_tool
from tests.tools.shell_context import ShellContext, ran

LANDLOCK = found(Kind.LANDLOCK)
needs_landlock = pytest.mark.skipif(LANDLOCK == NONE, reason="this kernel has no Landlock")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


def shell() -> Tool:
    return run_shell_tool(sandbox=None, grace=0.5)


def processes_with(mark: str) -> list[int]:
    """Processes that have this text among their arguments, save ourselves."""
    living = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                living.append(int(folder.name))
        except OSError:
            continue
    return living


async def gone(mark: str) -> bool:
    """Waits for the system to take leave of processes that were already ended."""
    with anyio.move_on_after(10):
        while processes_with(mark):
            await anyio.lowlevel.checkpoint()
        return True
    return False


@pytest.fixture
def mark(tmp_path: Path) -> str:
    """The name of a program that only this test runs, so that its processes can be found."""
    program = tmp_path / "programs" / f"lingering-{os.getpid()}-{tmp_path.name}"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable} -S\nimport os, time\nos.write(1, b'up\\n')\ntime.sleep(600)\n"
    )
    program.chmod(0o755)
    return str(program)


async def test_a_command_that_succeeds_returns_its_exit_code_and_output(tmp_path: Path) -> None:
    output = await ran(shell(), ShellContext(tmp_path), "echo hello; pwd")

    assert output == Output(f"exit code: 0\n\nhello\n{tmp_path}")


async def test_a_command_that_fails_is_a_failed_output_with_both_streams(tmp_path: Path) -> None:
    output = await ran(shell(), ShellContext(tmp_path), "echo good; echo bad >&2; exit 3")

    assert output == Output("exit code: 3\n\nstdout:\ngood\n\nstderr:\nbad", failed=True)


async def test_silence_is_said(tmp_path: Path) -> None:
    assert await ran(shell(), ShellContext(tmp_path), "true") == Output(
        "exit code: 0\n\n(no output)"
    )


async def test_a_command_that_does_not_exist_gets_a_hint(tmp_path: Path) -> None:
    output = await ran(shell(), ShellContext(tmp_path), "no_such_program_here")

    assert output.failed
    assert output.text.startswith("exit code: 127\n")
    assert output.text.endswith(
        "[A command was not found: it is not installed here, or its name is another.]"
    )


async def test_there_is_no_input_to_wait_for(tmp_path: Path) -> None:
    output = await ran(shell(), ShellContext(tmp_path), 'read line; echo "status $?"; cat')

    assert output == Output("exit code: 0\n\nstatus 1")


async def test_a_folder_of_the_workspace_can_be_chosen_and_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    tool, context = shell(), ShellContext(tmp_path)

    inside = await ran(tool, context, "basename $PWD; cd /; x=1", workdir="sub")
    after = await ran(tool, context, "pwd; echo [$x]")

    assert inside == Output("exit code: 0\n\nsub")
    assert after == Output(f"exit code: 0\n\n{tmp_path}\n[]")


async def test_a_folder_that_is_not_there_is_a_tool_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no folder"):
        await ran(shell(), ShellContext(tmp_path), "ls", workdir="nowhere")


async def test_output_is_told_while_the_command_runs(tmp_path: Path) -> None:
    tool, context = shell(), ShellContext(tmp_path)
    (tmp_path / "go").unlink(missing_ok=True)
    async with anyio.create_task_group() as group:

        async def answer() -> None:
            with anyio.fail_after(20):
                await context.heard.wait()
            (tmp_path / "go").touch()

        group.start_soon(answer)
        output = await ran(
            tool,
            context,
            "printf '\\033[31mfirst\\033[0m\\n'; while ! [ -e go ]; do :; done; echo last",
        )

    assert output == Output("exit code: 0\n\nfirst\nlast")
    assert "".join(context.told) == "first\nlast\n"


async def test_a_time_out_ends_the_command_and_keeps_what_it_wrote(
    tmp_path: Path, mark: str
) -> None:
    output = await ran(shell(), ShellContext(tmp_path), f"echo early; {mark}", timeout=1.0)

    assert output == Output(
        "timed out: ended after 1 seconds. Up to 600 can be asked for. What it wrote until then:"
        "\n\nearly\nup",
        failed=True,
    )
    assert await gone(mark)


async def test_a_command_that_ignores_the_asking_is_forced(tmp_path: Path, mark: str) -> None:
    command = f"trap '' TERM HUP INT; {mark} & {mark} & while :; do wait; done"

    output = await ran(shell(), ShellContext(tmp_path), command, timeout=1.0)

    assert output.failed
    assert await gone(mark)


async def test_cancelling_leaves_no_process_behind(tmp_path: Path, mark: str) -> None:
    context = ShellContext(tmp_path)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ran, shell(), context, f"{mark} & (setsid {mark} &) ; {mark}")
            await context.heard.wait()
            assert processes_with(mark)
            group.cancel_scope.cancel()

    assert await gone(mark)


async def test_what_is_left_in_the_background_is_ended_and_said(tmp_path: Path, mark: str) -> None:
    output = await ran(shell(), ShellContext(tmp_path), f"{mark} & echo started")

    assert not output.failed
    assert output.text.endswith(
        "[1 process was still running in the background and had to be ended.]"
    )
    assert await gone(mark)


async def test_a_daemon_that_holds_the_pipes_does_not_hold_the_result(
    tmp_path: Path, mark: str
) -> None:
    # Two forks and a session of its own: the shell is no longer its parent, nor its leader.
    output = await ran(
        shell(), ShellContext(tmp_path), f"(setsid {mark} 2>&1 & ) ; echo done", timeout=30
    )

    assert output.text.splitlines()[:1] == ["exit code: 0"]
    assert "timed out" not in output.text
    assert await gone(mark)


def test_nothing_outlives_the_process_that_started_it(tmp_path: Path, mark: str) -> None:
    program = (
        "import anyio, json, sys; from pathlib import Path\n"
        "from holdfast.tools.shell import run_shell_tool\n"
        "from tests.tools.shell_context import ShellContext, ran\n"
        "async def main():\n"
        "    tool = run_shell_tool(sandbox=None, grace=0.5)\n"
        "    context = ShellContext(Path(sys.argv[1]))\n"
        "    context.tell = lambda progress: print(progress.text, flush=True)\n"
        "    await tool.run({'command': sys.stdin.readline()}, context)\n"
        "anyio.run(main)\n"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
    ) as parent:  # fmt: skip
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(f"(setsid {mark} &); {mark}\n".encode())
        parent.stdin.flush()
        first = parent.stdout.readline()
        living = processes_with(mark)
        parent.send_signal(signal.SIGKILL)

    assert first == b"up\n"
    assert living
    assert anyio.run(gone, mark)


async def test_secrets_do_not_reach_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    monkeypatch.setenv("GITHUB_TOKEN", "hidden")

    output = await ran(shell(), ShellContext(tmp_path), "env")

    assert "hidden" not in output.text
    assert "TERM=dumb" in output.text.splitlines()


def test_the_environment_keeps_what_is_no_secret_and_what_was_allowed() -> None:
    given = {
        "PATH": "/bin", "HOME": "/root", "TOKENIZERS": "x", "OPENAI_API_KEY": "s", "MY_SECRET": "s",
        "AWS_SECRET_ACCESS_KEY": "s", "DB_PASSWORD": "s", "NPM_TOKEN": "wanted", "BASH_ENV": "f",
        "BASH_FUNC_ls%%": "() { rm; }", "github_token": "s", "MONKEY": "kept", "PGPASSWORD": "s",
        "MYSQL_PWD": "s", "DATABASE_URL": "postgres://me:s@host/db", "GITHUB_PAT": "s",
        "OPENAI_KEY": "s", "SENTRY_DSN": "s", "SSH_KEY_PASSPHRASE": "s", "PWD": "/x", "OLDPWD": "/y",
        "SSH_AUTH_SOCK": "s", "DBUS_SESSION_BUS_ADDRESS": "s", "XDG_RUNTIME_DIR": "s", "TMUX": "s",
        "DOCKER_HOST": "s", "PAGES_URL": "https://host/a", "NPM_CONFIG__AUTH": "s",
    }  # fmt: skip

    kept = cleaned_environment(given, frozenset({"NPM_TOKEN"}))

    ours = {name: value for name, value in kept.items() if name in given}
    assert ours == {
        "PATH": "/bin", "HOME": "/root", "TOKENIZERS": "x", "NPM_TOKEN": "wanted", "MONKEY": "kept",
        "PWD": "/x", "OLDPWD": "/y", "PAGES_URL": "https://host/a",
    }  # fmt: skip


async def test_a_process_is_ended_also_if_the_command_ends_its_keeper(
    tmp_path: Path, mark: str
) -> None:
    command = f"setsid {mark} > up & while ! [ -s up ]; do :; done; kill -9 $PPID; sleep 600"

    output = await ran(shell(), ShellContext(tmp_path), command)

    assert output == Output(
        "exit code: unknown; the process that watched the command was ended.\n\n(no output)",
        failed=True,
    )
    assert await gone(mark)


async def test_endless_output_is_kept_at_both_ends_and_bounded(tmp_path: Path) -> None:
    output = await ran(
        shell(),
        ShellContext(tmp_path),
        "echo begin; yes x | head -c 12000000; echo end",
        timeout=30,
    )

    assert output.text.startswith("exit code: 0\n\nbegin\nx\n")
    assert output.text.endswith("x\nend")
    assert "[7000010 of 12000010 bytes are left out here]" in output.text
    assert len(output.text) < 5_000_200


async def test_binary_output_is_counted_not_shown(tmp_path: Path) -> None:
    output = await ran(shell(), ShellContext(tmp_path), "head -c 1000 /dev/zero")

    assert output == Output("exit code: 0\n\n[1000 bytes that are no text]")


def test_the_ends_of_a_stream_are_kept_whatever_its_pieces() -> None:
    kept = Kept(10)
    for digit in "0123456789abcdefghij":
        kept.add(digit.encode())

    assert kept.text() == "01234\n[10 of 20 bytes are left out here]\nfghij"


@pytest.mark.parametrize(
    "text", ["\x1bP", "\x1b]", "\x1b[", "\x1b[0", "\x1bX\x1b", "\r", "\x1b", "\x1b^a\x1b\\"]
)
def test_no_output_takes_long_to_clean(text: str) -> None:
    many = text * (4_000_000 // len(text))

    assert "P" not in cleaned(many)  # what takes more than one look would not end here


def test_a_terminal_s_tricks_are_taken_out() -> None:
    text = "\x1b[1mbold\x1b[0m\r\n10%\r50%\r100%\n\x1b]0;title\x07x\x08y\ttab\n"

    assert cleaned(text) == "bold\n100%\nxy\ttab\n"


def test_a_command_is_asked_for_and_nothing_else_is_taken() -> None:
    tool = shell()
    for text in ("{}", '{"command": "  "}', '{"command": "a", "timeout": 9999}', '{"cmd": [1]}'):
        with pytest.raises(BadArguments):
            tool.parse(text)
    assert dict(tool.parse('{"command": "ls", "timeout": "5"}')) == {"command": "ls", "timeout": 5}


def test_the_specification_says_what_the_loop_must_know() -> None:
    spec = shell().spec

    assert (spec.name, spec.effect, spec.mutates, spec.keep) == (
        "run_shell", SideEffect.UNSAFE, True, Keep.ENDS,
    )  # fmt: skip
    assert "do not last" in spec.description


def test_a_sandbox_that_is_not_there_is_refused_not_left_out() -> None:
    with pytest.raises(NoSandbox, match="cannot be confined"):
        run_shell_tool(sandbox=NONE)
    with pytest.raises(NoSandbox, match="only be held back by a sandbox"):
        run_shell_tool(sandbox=None, network=False)


Check = tuple[str, Callable[[Path], Touch]]
CHECKS: list[Check] = [
    ("ls -la", lambda _: Touch(Access.READ, ("ls -la",))),
    ("cat notes.txt | head -3", lambda _: Touch(Access.READ, ("cat notes.txt", "head -3"))),
    ("sed -n '/foo/p' notes.txt", lambda _: Touch(Access.READ, ("sed -n /foo/p notes.txt",))),
    ("make test", lambda _: Touch(Access.EXECUTE, ("make test",))),
    ("cat /etc/passwd", lambda _: Touch(Access.EXECUTE, ("cat /etc/passwd",))),
    ("cat ~/.profile /e*c/passwd", lambda _: Touch(Access.EXECUTE, ("cat '~/.profile' /e*c/passwd",))),
    ("grep -f/etc/passwd x", lambda _: Touch(Access.EXECUTE, ("grep -f/etc/passwd x",))),
    ("cat link", lambda _: Touch(Access.EXECUTE, ("cat link",))),
    ("echo x > new.txt", lambda _: Touch(Access.EXECUTE, ("> new.txt", "echo x"))),
    (
        "echo x > notes.txt",
        lambda _: Touch(
            Access.EXECUTE, ("> notes.txt", "echo x"), "It replaces what is in notes.txt."
        ),
    ),
    ("echo x >> notes.txt", lambda _: Touch(Access.EXECUTE, (">> notes.txt", "echo x"))),
    (
        "cd sub && echo x > inner.txt",
        lambda _: Touch(
            Access.EXECUTE, ("cd sub", "> inner.txt", "echo x"), "It replaces what is in inner.txt."
        ),
    ),
    (
        "mv new.txt notes.txt",
        lambda _: Touch(
            Access.EXECUTE, ("mv new.txt notes.txt",), "It replaces what is in notes.txt."
        ),
    ),
    (
        "cp a/inner.txt sub",
        lambda _: Touch(
            Access.EXECUTE, ("cp a/inner.txt sub",), "It replaces what is in sub/inner.txt."
        ),
    ),
    (
        "touch ../x",
        lambda _: Touch(
            Access.EXECUTE,
            ("touch ../x",),
            "It writes to ../x, which is outside the workspace.",
        ),
    ),
    (
        "echo x > .git/hooks/post-commit",
        lambda _: Touch(
            Access.EXECUTE,
            ("> .git/hooks/post-commit", "echo x"),
            "It writes to .git/hooks/post-commit, which decides what may run later.",
        ),
    ),
    (
        "cd / && ls",
        lambda _: Touch(
            Access.EXECUTE, ("cd /", "ls"), "It goes to /, which is outside the workspace."
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("command", "expected"), CHECKS, ids=[command for command, _ in CHECKS])
def test_a_call_tells_what_it_would_touch(
    tmp_path: Path, command: str, expected: Callable[[Path], Touch]
) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.txt").write_text("inner")
    (tmp_path / "link").symlink_to("/etc/passwd")

    assert shell().touch({"command": command}, tmp_path) == expected(tmp_path)


def test_a_folder_outside_the_workspace_is_a_danger(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()

    touched = shell().touch({"command": "ls", "workdir": ".."}, tmp_path / "work")

    assert touched == Touch(
        Access.EXECUTE,
        ("ls",),
        f"It runs in {tmp_path.resolve()}, which is outside the workspace.",
    )


@needs_landlock
async def test_in_a_sandbox_a_command_writes_only_in_the_workspace_and_its_own_tmp(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    tool = run_shell_tool(sandbox=found(Kind.LANDLOCK))
    command = "echo in > in.txt; echo tmp > $TMPDIR/t; cat in.txt $TMPDIR/t; echo out > ../out.txt"

    output = await ran(tool, ShellContext(tmp_path / "work"), command)

    assert output.failed
    assert output.text.startswith("exit code: 1\n\nstdout:\nin\ntmp\n\nstderr:\n")
    assert output.text.endswith(
        "[The sandbox lets commands write only in the workspace and $TMPDIR. Write there instead.]"
    )
    assert os.listdir(tmp_path) == ["work"]  # noqa: PTH208


@pytest.mark.skipif(not LANDLOCK.network, reason="this kernel cannot hold connections")
async def test_a_connection_that_is_held_back_is_called_that(tmp_path: Path) -> None:
    tool = run_shell_tool(sandbox=LANDLOCK, network=False)

    output = await ran(tool, ShellContext(tmp_path), "exec 3<>/dev/tcp/127.0.0.1/9")

    assert output.text.endswith("[The sandbox holds connections back; commands must do without.]")
    assert "cannot make TCP connections" in tool.spec.description


@needs_landlock
async def test_a_cancelled_command_changes_nothing_that_is_guarded(
    tmp_path: Path, mark: str
) -> None:
    (tmp_path / ".holdfast").mkdir()
    (tmp_path / "run.sh").write_text(f"echo x > .holdfast/new\n{mark}\n")
    context = ShellContext(tmp_path)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ran, run_shell_tool(sandbox=LANDLOCK), context, "sh run.sh")
            await context.heard.wait()
            group.cancel_scope.cancel()

    assert list((tmp_path / ".holdfast").iterdir()) == []
