"""From all layers to one set of values, each with the layer it came from.

Flag > environment > project file > user file > profile > default. Nothing is read but what is
handed in and the files it points to, and nothing is kept: whoever loads twice reads twice.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

from holdfast.core.limits import Contradiction
from holdfast.settings.kinds import DOLLARS, KEYS, MILLION
from holdfast.settings.named import with_origins
from holdfast.settings.origins import DEFAULT, BadSettings, Layer, Origin
from holdfast.settings.places import places, project_file
from holdfast.settings.profiles import of_profile
from holdfast.settings.reading import Given, Read, of_environment, of_file, of_flags
from holdfast.settings.values import Values

ADDED = frozenset({"permissions.allow", "permissions.ask", "permissions.deny", "secrets.names"})
"""Lists to which every layer adds: a project must not be able to lift what its user denies."""


NOWHERE = Path("/dev/null/profiles")
"""A folder that cannot be."""


@dataclass(frozen=True, slots=True)
class Loaded:
    values: Values
    origins: Mapping[str, Origin]
    """Of every key that is not as it is by default; entries of a table by `table.entry`."""
    warnings: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    """Those that were read, the strongest first."""

    def origin(self, key: str) -> Origin:
        return self.origins.get(key, DEFAULT)


def load(
    *,
    flags: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    home: Path | None = None,
    profile: str | None = None,
    trusted: bool = False,
    strict: bool = False,
) -> Loaded:
    """The settings of whoever works in `folder`: the process's own environment, folder and home,
    unless given. Raises `BadSettings`.

    The file of a project is read only if the folder is `trusted`, because it can name programs
    to start. With `strict`, a key that does not exist is an error and not a warning.
    """
    env = os.environ if env is None else env
    folder, home = folder or Path.cwd(), home or Path.home()
    own = places(env, home)
    project, warnings = trusted_file(folder, own.user_file, trusted=trusted)
    above = of_file(own.user_file, Layer.USER)
    above += of_file(project, Layer.PROJECT) if project else Read()
    above += of_environment(env) + of_flags({**(flags or {}), **asked_for(profile)})
    read = of_profile(chosen(above.given), own.profiles) + above
    problems = read.problems + (read.unknown if strict else ())
    if problems:
        raise BadSettings(problems)
    said, origins = strongest(read.given)
    try:
        values = built(said)
    except Contradiction as wrong:
        raise BadSettings([with_origins(str(wrong), origins)]) from wrong
    used = tuple(file for file in (project, own.user_file) if file and file.is_file())
    return Loaded(values, origins, (*warnings, *read.unknown), used)


def of_a_profile(name: str) -> Loaded:
    """The settings of a profile that comes with us, and nothing else: no file and no environment.
    For programs that bring their settings themselves. Raises `BadSettings`."""
    read = of_profile(name, NOWHERE)
    if read.problems:
        raise BadSettings(read.problems)
    said, origins = strongest(read.given)
    return Loaded(replace(built(said), profile=name), origins, read.unknown)


def trusted_file(folder: Path, user: Path, *, trusted: bool) -> tuple[Path | None, tuple[str, ...]]:
    """The file of the project, if it may be read, and what to say if it may not."""
    file = project_file(folder)
    if file is None or file == user:
        return None, ()
    if trusted:
        return file, ()
    return None, (f"{file} is not read, because the folder is not trusted.",)


def asked_for(profile: str | None) -> Mapping[str, object]:
    return {} if profile is None else {"profile": profile}


def chosen(given: Iterable[Given]) -> str:
    """The profile that is wanted: the last word counts."""
    return next(
        (str(each.value) for each in reversed([*given]) if each.key == "profile"),
        str(KEYS["profile"].default),
    )


def strongest(given: Iterable[Given]) -> tuple[dict[str, object], dict[str, Origin]]:
    """For each key the value of the strongest layer, when the weaker ones come first."""
    values: dict[str, object] = {}
    origins: dict[str, Origin] = {}
    for each in given:
        weaker, name = values.get(each.key), each.key
        if each.entry is not None:
            name = f"{each.key}.{each.entry}"
            before = weaker if isinstance(weaker, dict) else {}
            values[each.key] = {**before, each.entry: each.value}
            origins[name] = each.origin
        elif each.key in ADDED and isinstance(weaker, tuple) and isinstance(each.value, tuple):
            values[name] = (*weaker, *(new for new in each.value if new not in weaker))
            origins[name] = joined(each.origin, origins[name])
        else:
            values[name], origins[name] = each.value, each.origin
    return values, origins


def joined(origin: Origin, weaker: Origin) -> Origin:
    alone = Origin(weaker.layer, weaker.where, weaker.line)
    return Origin(origin.layer, origin.where, origin.line, (alone, *weaker.also))


def built(said: Mapping[str, object]) -> Values:
    """The values, with defaults for what nobody said. Raises `Contradiction`."""
    said = dict(said)
    if DOLLARS in said:
        dollars = said.pop(DOLLARS)
        assert isinstance(dollars, float)
        if dollars * MILLION < 1:
            raise Contradiction(f"{DOLLARS} is {dollars:g}, and must be at least a millionth.")
        said["limits.cost"] = round(dollars * MILLION)
    top: dict[str, object] = {}
    default = Values()
    for each in fields(Values):
        value = getattr(default, each.name)
        if is_dataclass(value):
            inside = {
                inner.name: said[f"{each.name}.{inner.name}"]
                for inner in fields(value)
                if f"{each.name}.{inner.name}" in said
            }
            group: type = type(value)
            top[each.name] = group(**inside)
        elif each.name in said:
            top[each.name] = said[each.name]
    return Values(**top)  # type: ignore[arg-type]
