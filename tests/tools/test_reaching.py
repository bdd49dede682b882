"""Which commands of the shell may run unasked, and where they reach: real files, links and repositories."""

import os
import sys
from pathlib import Path

import pytest

from holdfast.tools.base import Access, Tool
from holdfast.tools.shell import run_shell_tool
from tests.tools.shell_context import ShellContext, in_git, ran, repository_in

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="knows where Linux has its programs"
)


def shell() -> Tool:
    return run_shell_tool(sandbox=None, grace=0.5)


READS_INSIDE = """\
cat notes.txt
cat ./n*.txt
cd sub && cat inner.txt ../notes.txt
cat sub/../notes.txt
grep -rn x .
ls -R
git status
git log --oneline"""

LEAVES = """\
cd sub && cat ../../secret.txt
cat ../secret.txt
cat deep/../../../../secret.txt
cat ~+/../secret.txt
cat ./l*
cat lin?
cat sub/../link
cat '~/x'
grep -f../secret.txt x
grep -rf../secret.txt x
grep --file=../secret.txt x
head -qn1 ../secret.txt
cd outer && ls
cd deep/../.. && ls
ls outer/secret.txt
git diff ../secret.txt notes.txt
cat /proc/self/environ"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace beside a secret, with links to it."""
    work = tmp_path / "work"
    (work / "sub" / "x" / "y").mkdir(parents=True)
    (work / "notes.txt").write_text("notes")
    (work / "sub" / "inner.txt").write_text("inner")
    (tmp_path / "secret.txt").write_text("secret")
    (work / "link").symlink_to("../secret.txt")
    (work / "outer").symlink_to("..")
    (work / "deep").symlink_to("sub/x/y")
    (work / "~").symlink_to("..")
    (tmp_path / "x").write_text("secret")
    return work


@pytest.mark.parametrize("command", READS_INSIDE.split("\n"))
def test_reading_in_the_workspace_needs_nobody(work: Path, command: str) -> None:
    assert shell().touch({"command": command}, work).access is Access.READ


@pytest.mark.parametrize("command", LEAVES.split("\n"))
def test_reading_outside_is_never_free(work: Path, command: str) -> None:
    assert shell().touch({"command": command}, work).access is Access.EXECUTE


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("cd deep/../.. && echo x > out.txt", "It goes to deep/../.., which is outside the workspace."),
        ("echo x > ~+/../out.txt", "It writes to '~+/../out.txt', which is known only when it runs."),
        ("echo x > .GIT/config", "It writes to .GIT/config, which decides what may run later."),
        ("git diff --output=../x", "It writes to ../x, which is outside the workspace."),
        ("git diff --outp=notes.txt", "It replaces what is in notes.txt."),
        ("git checkout notes.txt", "'git' throws away changes that are not committed."),
        ("cd sub && echo x > ../../out", "It writes to ../../out, which is outside the workspace."),
    ],
)  # fmt: skip
def test_writing_outside_is_a_danger(work: Path, command: str, why: str) -> None:
    assert why in shell().touch({"command": command}, work).danger


def test_a_program_that_is_not_the_systems_is_not_free(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "sub" / "ls").write_text("#!/bin/sh\ntouch ran")
    (work / "sub" / "ls").chmod(0o755)
    monkeypatch.setenv("PATH", f"{work / 'sub'}:/usr/bin:/bin")

    assert shell().touch({"command": "ls"}, work).access is Access.EXECUTE
    assert shell().touch({"command": "cat notes.txt"}, work).access is Access.READ


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return repository_in(tmp_path)


async def test_git_looks_and_changes_nothing(repository: Path) -> None:
    (repository / "same.txt").write_text("same\n")
    in_git(repository, "add", "same.txt")
    index = (repository / ".git" / "index").read_bytes()
    os.utime(repository / "same.txt", (1, 1))  # git would note the new time in its index
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.write_text("#!/bin/sh\ntouch ran")
    hook.chmod(0o755)

    outputs = [
        await ran(shell(), ShellContext(repository), command)
        for command in (
            "git status --short",
            "git diff --stat",
            "git log --oneline",
            "git blame a.txt",
        )
    ]

    assert [output.failed for output in outputs] == [False] * 4
    assert (repository / ".git" / "index").read_bytes() == index
    assert not (repository / "ran").exists()


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\tfsmonitor = touch ran; false\n",
        '[diff]\n\texternal = "touch ran;:"\n',
        '[diff "x"]\n\ttextconv = "touch ran;:"\n',
        '[filter "x"]\n\tclean = "touch ran;:"\n',
        "[include]\n\tpath = ../more\n",
        "[core] fsmonitor = touch ran\n",
        "[core]\n\tbare = \\\nfalse\n\tfsmonitor = x\n",
        "[core]\n\tworktree = /\n",
        "[extensions]\n\tpartialclone = x\n",
        '[remote "x"]\n\tpromisor = true\n',
    ],
)
def test_git_is_not_free_where_the_repository_may_name_programs(
    repository: Path, settings: str
) -> None:
    look = {"command": "git status"}
    assert shell().touch(look, repository).access is Access.READ
    with (repository / ".git" / "config").open("a") as file:
        file.write(settings)

    assert shell().touch(look, repository).access is Access.EXECUTE


def test_git_is_not_free_in_a_folder_that_only_looks_like_a_repository(repository: Path) -> None:
    docs = repository / "docs"
    for folder in ("objects", "refs"):
        (docs / folder).mkdir(parents=True)
    (docs / "HEAD").write_text("ref: refs/heads/main\n")
    (docs / "config").write_text("[core]\n\tworktree=..\n\tfsmonitor=touch ran;false\n")

    for given in (
        {"command": "cd docs && git status"},
        {"command": "git status", "workdir": "docs"},
    ):
        assert shell().touch(given, repository).access is Access.EXECUTE


@pytest.mark.parametrize("name", [".gitmodules", "sub/.git"])
def test_git_is_not_free_in_or_with_submodules(repository: Path, name: str) -> None:
    (repository / "sub").mkdir()
    (repository / name).write_text("gitdir: ../.git/modules/sub\n")

    found = shell().touch({"command": "git status", "workdir": str(Path(name).parent)}, repository)

    assert found.access is Access.EXECUTE
