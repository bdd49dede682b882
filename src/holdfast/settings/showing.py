"""Every number that is in force, and who said so."""

from dataclasses import fields, is_dataclass

from holdfast.settings.kinds import DOLLARS, MILLION
from holdfast.settings.loading import Loaded
from holdfast.settings.runs import run_settings, words
from holdfast.settings.values import Values


def effective(loaded: Loaded, window: int | None = None) -> list[tuple[str, object, str]]:
    """Each key, its value and its origin. With a `window`, the numbers that depend on it are
    those of a run in it."""
    rows: list[tuple[str, object, str]] = []
    for key, value in flat(loaded.values):
        rows.append((key, value, str(loaded.origin(key))))
    if window is None:
        return rows
    settings = run_settings(loaded, model="", window=window, system="")
    said = words(loaded, window)
    run = {**dict(grouped("budget", settings.budget)), **dict(grouped("caps", settings.caps))}
    return [(key, run.get(key, value), said.get(key, origin)) for key, value, origin in rows]


def flat(values: Values) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for each in fields(Values):
        value = getattr(values, each.name)
        found += grouped(each.name, value) if is_dataclass(value) else entries(each.name, value)
    return [
        (DOLLARS, value / MILLION)
        if key == "limits.cost" and isinstance(value, int)
        else (key, value)
        for key, value in found
    ]


def grouped(group: str, value: object) -> list[tuple[str, object]]:
    assert is_dataclass(value)
    rows: list[tuple[str, object]] = []
    for each in fields(value):
        rows += entries(f"{group}.{each.name}", getattr(value, each.name))
    return rows


def entries(key: str, value: object) -> list[tuple[str, object]]:
    """One row, or one for each entry of a table."""
    if isinstance(value, dict) and value:
        return [(f"{key}.{entry}", each) for entry, each in value.items()]
    return [(key, value)]
