"""What a docstring says of a function and of its parameters, in the styles people write.

Only the text in front of the first section describes the tool: every word of it is sent with every
request.
"""

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

PARAMETERS = {"args", "arguments", "parameters", "params", "other parameters", "keyword args"}
OTHERS = {
    "returns", "return", "yields", "yield", "raises", "raise", "warns", "example", "examples", "note",
    "notes", "see also", "references", "attributes", "todo", "warning", "warnings",
}  # fmt: skip
UNDERLINE = re.compile(r"-{3,}\s*")
FIELD = re.compile(r":(\w+)(?:\s+([^:]*))?:\s*(.*)")
ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")


@dataclass(frozen=True, slots=True)
class Described:
    text: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def described(docstring: str | None, names: Collection[str]) -> Described:
    """The description in a docstring, and what it says of the parameters with these names."""
    if not docstring:
        return Described()
    text: list[str] = []
    found: dict[str, list[str]] = {}
    section, current, depth = "", "", 0
    for line, heading in headed(inspect.cleandoc(docstring).splitlines()):
        indent = len(line) - len(line.lstrip())
        if heading:
            section, current = heading, ""
            continue
        name, said = parameter(line, names, section)
        starts = bool(name) and (not current or indent <= depth)
        if starts:
            current, depth = name, indent
            found.setdefault(name, []).append(said)
        elif current and (indent > depth or not line.strip()):
            found[current].append(line.strip())
        elif FIELD.match(line):
            section, current = "field", ""
        else:
            current = ""
            text += [line] if not section else []
    return Described(
        paragraphs(text),
        {name: " ".join(filter(None, lines)) for name, lines in found.items() if any(lines)},
    )


def headed(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Each line, and the name of the section that begins with it; underlines are left out."""
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        word = line.strip().rstrip(":").lower()
        colon = line.strip().endswith(":") or UNDERLINE.fullmatch(following)
        if UNDERLINE.fullmatch(line):
            continue
        known = word in PARAMETERS or word in OTHERS
        kind = "parameters" if word in PARAMETERS else "other"
        yield line, kind if known and colon and line == line.lstrip() else ""


def parameter(line: str, names: Collection[str], section: str) -> tuple[str, str]:
    """The parameter that a line begins to describe, and what it says; else two empty texts."""
    if field_ := FIELD.match(line):
        kind, rest, said = field_.groups()
        name = (rest or "").split()[-1:] or [""]
        return (name[0], said) if kind.startswith("param") and name[0] in names else ("", "")
    if section == "other":
        return "", ""
    entry = re.match(r"\s*`?\*{0,2}(\w+)`?\s*(?:\([^)]*\))?\s*(:|--|-)?(?:\s+(.*))?$", line)
    if entry is None or entry[1] not in names:
        return "", ""
    numpy = section == "parameters" and line == line.lstrip()
    if numpy:  # what follows the colon is a type; the text comes on the next line
        return entry[1], ""
    return (entry[1], entry[3] or "") if entry[2] in (":", "--") else ("", "")


def paragraphs(lines: list[str]) -> str:
    """Paragraphs on one line each; lists keep their lines."""
    text = ""
    for line in lines:
        if not line.strip():
            text = f"{text.rstrip()}\n\n"
        elif ITEM.match(line) and text:
            text = f"{text.rstrip(' ')}{'' if text.endswith(chr(10)) else chr(10)}{line.rstrip()} "
        else:
            text += f"{line.strip()} "
    return text.strip()
