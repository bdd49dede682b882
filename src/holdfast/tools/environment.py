"""The variables that a command is given: no secrets, no doors out, nothing that makes it do more."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

SECRETS = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|PWD$|SECRET|CREDENTIAL"
    r"|(^|_)(\w*API_?KEY|ACCESS_KEY|PRIVATE_KEY|KEY|TOKENS?|PAT|DSN|AUTH)(_|$)",
    re.IGNORECASE,
)
"""Names of variables that a command does not get to see."""
LOGIN = re.compile(r"://[^/\s]*:[^/\s]*@")
"""An address with a password in it."""
PLACES = ("PWD", "OLDPWD")
DOORS = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "TMUX", "DOCKER_HOST")
"""Where services can be found that do things for whoever asks; no sandbox of ours holds them all."""
OBEYED = ("BASH_ENV", "ENV", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE")
"""Variables with which a shell would do more than the command says."""
QUIET = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "NO_COLOR": "1",
    "CLICOLOR": "0",
    "PIP_NO_INPUT": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Programs must not wait for a person, page, or paint."""
SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin",
          "/opt/homebrew/bin", "/run/current-system/sw/bin")  # fmt: skip
"""Where the system keeps its programs."""
NO_PROGRAMS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("diff.autoRefreshIndex", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("submodule.recurse", "false"),
    ("safe.bareRepository", "explicit"),
    ("log.showSignature", "false"),
)
"""Settings for git with which it starts no program of a repository, as far as settings can do that."""


def cleaned_environment(given: Mapping[str, str], allowed: frozenset[str]) -> dict[str, str]:
    """The variables for a command; those whose names are `allowed` in any case."""
    return {
        name: value
        for name, value in given.items()
        if name in allowed or not (is_secret(name, value) or name in DOORS or makes_more(name))
    } | QUIET


def is_secret(name: str, value: str) -> bool:
    if name in PLACES:
        return False
    return SECRETS.search(name) is not None or LOGIN.search(value) is not None


def makes_more(name: str) -> bool:
    return name in OBEYED or name.startswith("BASH_FUNC_")


def for_reading(environment: Mapping[str, str]) -> dict[str, str]:
    """For a command that runs unasked: programs of the system only, and git starts none."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(("GIT_", "LD_", "DYLD_")) and name != "RIPGREP_CONFIG_PATH"
    }
    settings = {"GIT_CONFIG_COUNT": str(len(NO_PROGRAMS))}
    for at, (name, value) in enumerate(NO_PROGRAMS):
        settings |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    folders = [one for one in kept.get("PATH", os.defpath).split(os.pathsep) if one in SYSTEM]
    return (
        kept
        | settings
        | {
            "PATH": os.pathsep.join(folders or SYSTEM),
            "GIT_PAGER": "cat",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",  # else `git status` writes the index
            "GIT_NO_LAZY_FETCH": "1",
        }
    )


def is_of_the_system(program: str, environment: Mapping[str, str]) -> bool:
    """Whether this name means a program of the system, or none at all."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        if os.access(Path(folder) / program, os.X_OK):
            return folder in SYSTEM
    return True
