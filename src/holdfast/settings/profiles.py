"""Profiles: named bundles of settings, as files. Those that come with Holdfast, and the user's."""

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from holdfast.settings.origins import Layer, Origin
from holdfast.settings.reading import Read, lines_of, of_table, shown

OF_A_PROFILE = ("summary", "extends")
"""Keys that only a profile has: what it is, in a line, and which one it builds on."""


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    text: str
    where: str
    """Its file, or only its name if it came with Holdfast."""


def names(own: Path) -> list[str]:
    """All profiles there are; `own` is the folder of the user's."""
    shipped = [each.name for each in files("holdfast").joinpath("profiles").iterdir()]
    theirs = [each.name for each in own.iterdir()] if own.is_dir() else []
    ends = ".toml"
    return sorted({each.removesuffix(ends) for each in shipped + theirs if each.endswith(ends)})


def found(name: str, own: Path) -> Profile | None:
    """The profile of this name; the user's own comes before ours. Raises `OSError`, and
    `UnicodeDecodeError` for a file that is no text."""
    if not name.replace("-", "").replace("_", "").isalnum():
        return None  # so that a name is never a path
    if (own / f"{name}.toml").is_file():
        file = own / f"{name}.toml"
        return Profile(name, file.read_text(encoding="utf-8-sig"), str(file))
    ours = files("holdfast").joinpath("profiles", f"{name}.toml")
    return Profile(name, ours.read_text(encoding="utf-8"), name) if ours.is_file() else None


def of_profile(name: str, own: Path, below: tuple[str, ...] = ()) -> Read:
    """What the profile says, after what those say that it builds on."""
    if name in below:
        circle = " -> ".join((*below, name))
        return Read(problems=(f"the profile {name} builds on itself: {circle}.",))
    try:
        profile = found(name, own)
    except OSError as wrong:
        return Read(problems=(f"the profile {name} cannot be read: {wrong.strerror or wrong}.",))
    except UnicodeDecodeError:
        return Read(problems=(f"the profile {name} is not text in UTF-8.",))
    if profile is None:
        return Read(problems=(no_profile(name, own),))
    at = f"the profile {profile.where}"
    try:
        table = tomllib.loads(profile.text)
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        return Read(problems=(f"{at} is not TOML: {wrong}.",))
    for key in OF_A_PROFILE:
        if not isinstance(table.get(key, ""), str):
            sentence = f"{at}: {key} is {shown(table[key])}, and must be a text."
            return Read(problems=(sentence,))
    if "profile" in table:
        return Read(problems=(f"{at}: a profile cannot choose a profile; write extends.",))
    said = {key: value for key, value in table.items() if key not in OF_A_PROFILE}
    origin = Origin(Layer.PROFILE, profile.where)
    read = of_table(said, origin, at, lines_of(profile.text))
    base = table.get("extends")
    return of_profile(base, own, (*below, name)) + read if base else read


def summary(name: str, own: Path) -> str:
    """What the profile is, in its own line; nothing, if it does not say or cannot be read."""
    try:
        profile = found(name, own)
        said = tomllib.loads(profile.text).get("summary", "") if profile else ""
    except (OSError, ValueError):
        return ""
    return said if isinstance(said, str) else ""


def no_profile(name: str, own: Path) -> str:
    known = names(own)
    close = get_close_matches(name, known, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"there is no profile '{name}'.{meant} There are: {', '.join(known)}."
