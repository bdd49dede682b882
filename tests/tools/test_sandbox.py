"""What a sandbox holds, tried with real programs."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.tools.sandbox import (
    NONE,
    Bounds,
    Kind,
    NoSandbox,
    Sandbox,
    command_line,
    found,
    seatbelt,
    wrapped,
)

LANDLOCK = found(Kind.LANDLOCK)
needs_landlock = pytest.mark.skipif(LANDLOCK == NONE, reason="this kernel has no Landlock")
needs_network_rules = pytest.mark.skipif(
    not LANDLOCK.network, reason="the Landlock of this kernel has no rules for the network"
)


def confined(bounds: Bounds, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command_line(LANDLOCK, command, bounds),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


def run_python(bounds: Bounds, program: str, *arguments: str) -> str:
    done = confined(bounds, sys.executable, "-I", "-S", "-c", program, *arguments)
    return done.stdout + done.stderr.strip().rpartition("\n")[2]


@needs_landlock
def test_files_are_written_inside_and_nowhere_else(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "old").write_text("old")
    script = f"""
        echo new > {inside}/new && mkdir {inside}/dir && mv {inside}/new {inside}/dir/ && echo inside
        echo x > {outside}/new
        echo x > {outside}/old
        echo x >> {outside}/old
        rm {outside}/old
        mkdir {outside}/dir
        ln -s /etc {outside}/link
        mv {outside}/old {inside}/
        ln {outside}/old {inside}/linked
        echo quiet > /dev/null && echo null
        cat {outside}/old
    """

    done = confined(Bounds(write=(inside,)), "bash", "-c", script)

    assert done.stdout == "inside\nnull\nold"
    assert done.stderr.lower().count("denied") + done.stderr.count("Invalid cross-device") == 8
    assert [p.name for p in outside.iterdir()] == ["old"]
    assert (outside / "old").read_text() == "old"


@needs_landlock
def test_a_symlink_does_not_lead_out(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "victim").write_text("whole")
    (inside / "link").symlink_to(tmp_path / "victim")

    done = confined(Bounds(write=(inside,)), "bash", "-c", f"echo x > {inside}/link")

    assert done.returncode != 0
    assert (tmp_path / "victim").read_text() == "whole"


@needs_landlock
def test_the_rules_hold_for_what_a_command_starts(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    script = f"setsid bash -c 'nohup bash -c \"echo x > {tmp_path}/out\"'"

    confined(Bounds(write=(inside,)), "bash", "-c", script)

    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@needs_landlock
def test_reading_can_be_kept_to_what_was_told(tmp_path: Path) -> None:
    inside, secret = tmp_path / "in", tmp_path / "secret"
    inside.mkdir()
    secret.write_text("secret")
    (inside / "open").write_text("open\n")

    done = confined(
        Bounds(write=(inside,), read=()),
        "bash",
        "-c",
        f"cat {inside}/open; cat {secret}; ls {tmp_path}",
    )

    assert done.stdout == "open\n"
    assert done.stderr.count("Permission denied") == 2


CONNECTS = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10).close()
    print("connected")
except OSError as wrong:
    print(type(wrong).__name__)
"""


@needs_network_rules
def test_connections_are_refused_only_if_the_network_is_held_back(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        held = run_python(Bounds(write=(tmp_path,), network=False), CONNECTS, port)
        free = run_python(Bounds(write=(tmp_path,)), CONNECTS, port)

    assert (held, free) == ("PermissionError\n", "connected\n")


@needs_landlock
def test_no_rights_can_be_gained(tmp_path: Path) -> None:
    done = confined(Bounds(write=(tmp_path,)), "grep", "NoNewPrivs", "/proc/self/status")

    assert done.stdout.split() == ["NoNewPrivs:", "1"]


@needs_landlock
def test_a_command_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    done = confined(Bounds(write=(tmp_path,)), "no_such_program_here")

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("holdfast: cannot start the command: ")


@needs_landlock
def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    assert confined(Bounds(write=(tmp_path,)), "bash", "-c", "exit 7").returncode == 7


def test_without_a_sandbox_a_command_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoSandbox, match="this machine has no sandbox"):
        command_line(NONE, ["true"], Bounds(write=(tmp_path,)))


def test_a_sandbox_that_cannot_hold_the_network_refuses_to_pretend(tmp_path: Path) -> None:
    old = Sandbox(Kind.LANDLOCK, files=True, network=False, about="an old kernel.")

    with pytest.raises(NoSandbox, match="network cannot be held back: an old kernel"):
        command_line(old, ["true"], Bounds(write=(tmp_path,), network=False))


def test_what_is_found_says_what_it_holds() -> None:
    box = found()

    assert box.about.endswith(".")
    assert box.files == (box.kind is not Kind.NONE)
    assert found(Kind.NONE) == NONE


def test_bubblewrap_is_told_the_same_bounds(tmp_path: Path) -> None:
    line = wrapped("bwrap", Bounds(write=(tmp_path,), network=False))

    assert line == (
        "bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/",
        "--dev", "/dev", "--proc", "/proc", "--bind", str(tmp_path), str(tmp_path),
        "--unshare-net", "--",
    )  # fmt: skip


def test_the_profile_of_macos_quotes_what_it_is_given(tmp_path: Path) -> None:
    folder = tmp_path / 'a "quoted" one'
    profile = seatbelt(Bounds(write=(folder,), network=False)).split("\n")

    assert profile[:3] == ["(version 1)", "(allow default)", "(deny file-write*)"]
    quoted = str(folder.resolve()).replace('"', '\\"')
    assert profile[3] == f'(allow file-write* (subpath "{quoted}"))'
    assert profile[-1] == "(deny network*)"
