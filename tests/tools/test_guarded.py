"""Files that decide about later commands are as they were when a confined command has ended."""

import sys
from pathlib import Path

import pytest

from holdfast.tools.sandbox import NONE, Kind, found
from holdfast.tools.shell import run_shell_tool
from tests.tools.shell_context import ShellContext, ran, repository_in

LANDLOCK = found(Kind.LANDLOCK)
needs_landlock = pytest.mark.skipif(LANDLOCK == NONE, reason="this kernel has no Landlock")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return repository_in(tmp_path)


@needs_landlock
async def test_what_decides_about_later_commands_is_put_back_after_each(repository: Path) -> None:
    (repository / ".holdfast").mkdir()
    (repository / ".holdfast" / "config.toml").write_text("ours")
    settings = (repository / ".git" / "config").read_text()
    program = (
        "import os, pathlib as p; p.Path('.holdfast/config.toml').write_text('theirs'); "
        "p.Path('.holdfast/more').write_text('x'); "
        "open('.git/config', 'a').write('[core]\\n\\tfsmonitor = evil\\n'); "
        "p.Path('.git/hooks/post-checkout').write_text('evil'); p.Path('made.txt').write_text('kept')"
    )
    (repository / "run.py").write_text(program)

    output = await ran(
        run_shell_tool(sandbox=LANDLOCK), ShellContext(repository), f"{sys.executable} run.py"
    )

    assert output.text.endswith(
        "[It changed .git/hooks/post-checkout, .holdfast/more, .git/config, .holdfast/config.toml, "
        "which decide what may run later. They are as they were before. If that should be changed, "
        "say so to the user.]"
    )
    assert (repository / ".git" / "config").read_text() == settings
    assert [p.read_text() for p in (repository / ".holdfast").iterdir()] == ["ours"]
    assert not (repository / ".git" / "hooks" / "post-checkout").exists()
    assert (repository / "made.txt").read_text() == "kept"


@needs_landlock
@pytest.mark.parametrize(
    "trick",
    [
        "rm -r .holdfast; ln -s .. .holdfast",
        "rm -r .holdfast; echo x > .holdfast",
        "mv .holdfast other; mkdir -p .holdfast/config.toml/x",
        "chmod 777 .holdfast/config.toml",
        "rm .holdfast/config.toml; ln -s ../a.txt .holdfast/config.toml",
    ],
)
async def test_no_trick_with_folders_and_links_keeps_it_changed(
    repository: Path, trick: str
) -> None:
    (repository / ".holdfast").mkdir()
    config = repository / ".holdfast" / "config.toml"
    config.write_text("ours")
    config.chmod(0o640)
    (repository / "run.sh").write_text(trick)

    output = await ran(run_shell_tool(sandbox=LANDLOCK), ShellContext(repository), "sh run.sh")

    assert "It changed .holdfast" in output.text
    assert (config.read_text(), config.stat().st_mode & 0o777) == ("ours", 0o640)
    assert not config.is_symlink()
    assert not config.parent.is_symlink()
    assert (repository / "a.txt").read_text() == "two\n"


@needs_landlock
async def test_what_git_writes_down_by_itself_and_what_was_asked_for_stays(
    repository: Path,
) -> None:
    tool, context = run_shell_tool(sandbox=LANDLOCK), ShellContext(repository)

    for command in (
        "git remote add origin https://example.org/x && git branch --track other master || true",
        "git config core.hooksPath hooks",
        "echo x > .holdfast",
        "git init -q new",
    ):
        output = await ran(tool, context, command)
        assert "It changed" not in output.text

    settings = (repository / ".git" / "config").read_text()
    assert "example.org" in settings
    assert "hooksPath" in settings
    assert (repository / ".holdfast").read_text() == "x\n"
