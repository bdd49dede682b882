"""Whether git can look at the repository of a folder without starting a program that it names.

Settings and attributes of a repository can name programs for almost anything git does, and a
repository may have come from anywhere. So its settings must be on a list, and it must be of the
plain kind: no submodules, no worktrees, no folder that only looks like one.
"""

import re
from pathlib import Path

LARGEST = 64_000
SECTION = re.compile(r"\[\s*([\w.-]+)\s*(?:\"[^\"\\\n]*\"\s*)?\]")
SETTING = re.compile(r"([A-Za-z][\w-]*)\s*(?:=([^\\\n]*))?")
KNOWN = {
    "core": frozenset(
        """repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks
        autocrlf eol safecrlf quotepath untrackedcache abbrev""".split()
    ),
    "remote": frozenset("url pushurl fetch tagopt prune".split()),
    "branch": frozenset("remote merge rebase pushremote description".split()),
    "user": frozenset("name email".split()),
    "init": frozenset(("defaultbranch",)),
    "pull": frozenset("rebase ff".split()),
    "push": frozenset("default autosetupremote".split()),
    "commit": frozenset(("gpgsign",)),
    "gc": frozenset(("auto",)),
    "color": frozenset(("ui",)),
}
"""Settings that name no program."""


def is_plain(folder: Path) -> bool:
    """Whether what git would find from this folder on names no programs."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_symlink() or git.is_file():
            return False
        if git.is_dir():
            return not (place / ".gitmodules").exists() and all(
                has_known_settings(git / name) for name in ("config", "config.worktree")
            )
        if (place / "HEAD").exists() and (place / "objects").exists():
            return False  # git would take this folder itself for a repository
    return True


def has_known_settings(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            text = opened.read(LARGEST + 1).decode()
    except FileNotFoundError:
        return True
    except (OSError, UnicodeDecodeError):
        return False
    return len(text) <= LARGEST and are_known(text)


def are_known(text: str) -> bool:
    """Read line by line; what is not a line of its own is not known."""
    section = ""
    for line in text.split("\n"):
        plain = line.strip()
        if not plain or plain[0] in "#;":
            continue
        if header := SECTION.fullmatch(plain):
            section = header[1].lower()
            continue
        setting = SETTING.fullmatch(plain)
        if setting is None or setting[1].lower() not in KNOWN.get(section, ()):
            return False
        if section == "core" and setting[1].lower() == "bare" and "true" in (setting[2] or "true"):
            return False
    return True
