"""Where things are kept: the folders of the user, and the file of a project.

The rules are those of XDG, also on macOS, because people who work in a terminal look there. They
are followed here and not by a library, so that they can be asked for any environment.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.settings.reading import HOME

NAME = "holdfast"
PROJECT_FILE = Path(f".{NAME}") / "config.toml"


@dataclass(frozen=True, slots=True)
class Places:
    config: Path
    data: Path
    """Sessions: what must not be lost."""
    state: Path
    """What was typed, logs, locks: what would be missed."""
    cache: Path

    @property
    def user_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def profiles(self) -> Path:
        return self.config / "profiles"


def places(env: Mapping[str, str], home: Path) -> Places:
    """The folders of the user with this home folder. `HOLDFAST_HOME` moves all of them."""
    if env.get(HOME, "").strip():
        moved = Path(env[HOME].strip())
        moved = home / moved.relative_to("~") if moved.parts[:1] == ("~",) else moved
        return Places(moved, moved / "data", moved / "state", moved / "cache")
    return Places(
        base("XDG_CONFIG_HOME", home / ".config", env),
        base("XDG_DATA_HOME", home / ".local" / "share", env),
        base("XDG_STATE_HOME", home / ".local" / "state", env),
        base("XDG_CACHE_HOME", home / ".cache", env),
    )


def base(variable: str, otherwise: Path, env: Mapping[str, str]) -> Path:
    """XDG wants a relative path to be ignored."""
    given = Path(env.get(variable, "").strip())
    return (given if given.is_absolute() else otherwise) / NAME


def project_file(folder: Path) -> Path | None:
    """The nearest one from this folder up to the root of its repository. Without a repository
    only the folder itself is looked at: what lies above it may be anyone's."""
    for each in up_to_the_repository(folder):
        if is_there(each / PROJECT_FILE):
            return each / PROJECT_FILE
    return None


def up_to_the_repository(folder: Path) -> Iterator[Path]:
    upwards = (folder, *folder.parents)
    root = next((at for at, each in enumerate(upwards) if is_there(each / ".git")), 0)
    yield from upwards[: root + 1]


def is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder we may not look into is not ours
        return False
