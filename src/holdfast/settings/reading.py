"""One layer at a time: what a file, the environment or the flags say, checked key by key.

Which layer wins is decided in `loading`. Nothing is raised here: what is wrong is collected, so
that people see all of it at once.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from holdfast.settings.kinds import AUTO, DOLLARS, GROUPS, KEYS, NUMBERS, OPEN, TABLE, Key, Wrong
from holdfast.settings.origins import Layer, Origin
from holdfast.settings.values import Table

HOME = "HOLDFAST_HOME"
PREFIX = "HOLDFAST_"
ELSEWHERE = {"limits.cost": DOLLARS}
"""Names that people will guess and that are no near miss of ours."""
SHOWN = 60

HEADER = re.compile(r"\s*(\[\[?[^\[\]]+\]\]?)\s*(?:#.*)?$")
ASSIGNED = re.compile(
    r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*="""
)


@dataclass(frozen=True, slots=True)
class Given:
    key: str
    value: object
    origin: Origin
    entry: str | None = None
    """Its name in a table to which several layers may add: `[mcp_servers.NAME]`."""


@dataclass(frozen=True, slots=True)
class Read:
    """What one layer says."""

    given: tuple[Given, ...] = ()
    problems: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Sentences on keys that do not exist."""

    def __add__(self, other: "Read") -> "Read":
        return Read(
            self.given + other.given, self.problems + other.problems, self.unknown + other.unknown
        )


# --- files --------------------------------------------------------------------------------------


def of_file(path: Path, layer: Layer) -> Read:
    """What a file says; nothing, if there is none."""
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return Read()
    except OSError as wrong:
        return Read(problems=(f"{path} cannot be read: {wrong.strerror or wrong}.",))
    except UnicodeDecodeError:
        return Read(problems=(f"{path} is not text in UTF-8.",))
    return of_toml(content, Origin(layer, str(path)), str(path))


def of_toml(content: str, origin: Origin, name: str) -> Read:
    try:
        table = tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        return Read(problems=(f"{name} is not TOML: {wrong}.",))
    return of_table(table, origin, name, lines_of(content))


def of_table(table: Table, origin: Origin, name: str, lines: Mapping[tuple[str, ...], int]) -> Read:
    read = Read()
    for path, value in leaves(table):
        line = nearest(path, lines)
        at = name if line is None else f"{name}, line {line}"
        read += one(path, value, replace(origin, line=line), at)
    return read


def leaves(table: Table) -> Iterator[tuple[tuple[str, ...], object]]:
    """Each key with the path to it. In tables that are not ours the first step is the key."""
    for name, value in table.items():
        if name in OPEN and isinstance(value, Mapping):
            yield from (((name, str(entry)), each) for entry, each in value.items())
        elif name in GROUPS and isinstance(value, Mapping):
            for inner, each in value.items():
                known = KEYS.get(f"{name}.{inner}")
                if known and known.kind is NUMBERS and isinstance(each, Mapping):
                    yield from (((name, inner, str(entry)), most) for entry, most in each.items())
                else:
                    yield (name, str(inner)), each
        else:
            yield (name,), value


def one(path: tuple[str, ...], value: object, origin: Origin, at: str) -> Read:
    if path[0] in OPEN and len(path) == 2:
        return entry(path[0], path[1], value, origin, at)
    if len(path) == 3:
        return entry(".".join(path[:2]), path[2], value, origin, at)
    name = ".".join(path)
    if name in GROUPS:
        return Read(problems=(f"{at}: {name} is {shown(value)}, and must be a table.",))
    if name not in KEYS:
        return Read(unknown=(f"{at}: {no_such(name)}",))
    return checked(KEYS[name], value, origin, at)


def entry(table: str, name: str, value: object, origin: Origin, at: str) -> Read:
    """One entry of a table to which several layers may add."""
    named_tables = ("mcp_servers", "providers", "models")
    if table in named_tables and not isinstance(value, Mapping):
        return Read(problems=(f"{at}: {table}.{name} is {shown(value)}, and must be a table.",))
    if KEYS[table].kind is NUMBERS and (isinstance(value, bool) or not isinstance(value, int)):
        sentence = f"{at}: {table}.{name} is {shown(value)}, and must be a whole number."
        return Read(problems=(sentence,))
    return Read((Given(table, value, origin, name),))


def checked(key: Key, value: object, origin: Origin, at: str, *, as_text: bool = False) -> Read:
    try:
        fit = key.kind.of_text(str(value)) if as_text else key.kind.of(value)
    except Wrong as wrong:
        return Read(problems=(f"{at}: {key.name} is {shown(value)}, and {wrong}.",))
    return Read((Given(key.name, fit, origin),))


def lines_of(content: str) -> dict[tuple[str, ...], int]:
    """On which line each key begins, as far as that can be seen without reading values."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    inside = ""
    for number, line in enumerate(content.splitlines(), 1):
        if not inside:
            if header := HEADER.match(line):
                table = path_of(header[1])
                found.setdefault(table, number)
            elif key := ASSIGNED.match(line):
                found.setdefault((*table, *path_of(f"{key[1]} = 0")), number)
        inside = still_inside(line, inside)
    return found


def path_of(statement: str) -> tuple[str, ...]:
    """The names in a header or before an equals sign, quoted or not."""
    path: list[str] = []
    try:
        node: object = tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return ()
    while isinstance(node, dict | list) and node:
        if isinstance(node, list):
            node = node[0]
            continue
        name, node = next(iter(node.items()))
        path.append(name)
    return tuple(path)


def still_inside(line: str, inside: str) -> str:
    """The marks that close the long text which this line leaves open, or nothing."""
    for marks in ('"""', "'''"):
        if inside in ("", marks) and line.count(marks) % 2:
            return "" if inside else marks
    return inside


def nearest(path: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int | None:
    """The line of the key, or of the table it stands in."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


# --- the environment and the flags --------------------------------------------------------------


def of_environment(env: Mapping[str, str]) -> Read:
    """What variables say. An empty one says nothing."""
    variables = {key.variable: key for key in KEYS.values() if key.name not in OPEN}
    read = Read()
    for name in sorted(env):
        if not name.startswith(PREFIX) or name == HOME or not env[name].strip():
            continue
        if name in variables:
            origin = Origin(Layer.ENVIRONMENT, name)
            read += of_text(variables[name], env[name], origin, name)
        elif name.removeprefix(PREFIX).lower() in OPEN:
            read += Read(unknown=(f"{name} is not read: what it names is a table, for a file.",))
        else:
            close = get_close_matches(name, variables, n=1, cutoff=0.75)
            meant = f" Did you mean {close[0]}?" if close else ""
            read += Read(unknown=(f"{name} is not read: there is no such setting.{meant}",))
    return read


def of_text(key: Key, value: str, origin: Origin, at: str) -> Read:
    read = checked(key, value, origin, at, as_text=True)
    if key.kind not in (NUMBERS, TABLE) or not read.given:
        return read
    table = read.given[0].value
    assert isinstance(table, Mapping)
    return Read(tuple(Given(key.name, each, origin, name) for name, each in table.items()))


def of_flags(flags: Mapping[str, object]) -> Read:
    """What the caller says, by names with dots. Text is read like that of a variable; None is
    a flag that was not given."""
    read = Read()
    for name, value in flags.items():
        if value is None:
            continue
        origin, at = Origin(Layer.FLAG, name), f"the flag {name}"
        key = KEYS.get(name)
        if key is not None and isinstance(value, str):
            read += of_text(key, value, origin, at)
        else:
            path = tuple(name.split(".", 1)) if name.partition(".")[0] in OPEN else (name,)
            nested = nest(path, value) if key is None else nest(tuple(name.split(".")), value)
            found = of_table(nested, origin, at, {})
            read += Read(found.given, found.problems + found.unknown)
    return read


def nest(path: tuple[str, ...], value: object) -> Table:
    for name in reversed(path):
        value = {name: value}
    assert isinstance(value, dict)
    return value


# --- sentences ----------------------------------------------------------------------------------


def no_such(name: str) -> str:
    meant = did_you_mean(name)
    return f"there is no setting '{name}'{f'; did you mean {meant}?' if meant else '.'}"


def did_you_mean(name: str) -> str:
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    last = name.rpartition(".")[2]
    same = [key for key in KEYS if key.rpartition(".")[2] == last]
    if len(same) == 1:
        return same[0]
    close = get_close_matches(name, (*KEYS, *GROUPS), n=1, cutoff=0.7)
    return close[0] if close else nearest_end(last)


def nearest_end(last: str) -> str:
    """`max_rounds` is `limits.rounds`, if only one key ends like that."""
    ends = [key for key in KEYS if last.endswith(f"_{key.rpartition('.')[2]}")]
    return ends[0] if len(ends) == 1 else ""


def shown(value: object) -> str:
    """A value as it would stand in a file, short enough for a sentence."""
    text = toml(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def toml(value: object) -> str:
    import json

    match value:
        case None:
            return f'"{AUTO}"'
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{', '.join(map(toml, value))}]"
        case Mapping():
            pairs: Iterable[str] = (f"{name} = {toml(each)}" for name, each in value.items())
            return f"{{ {', '.join(pairs)} }}" if value else "{}"
        case _:
            return str(value)
