"""What a model is shown of something too long for it: a cut, a digest, shortened arguments.

A *cut* is a piece of a text and says so. A *digest* is the one line that stands for a result
which has left the window: no summary, but the values later calls need (ids, paths, names,
amounts, dates, codes) with as little as possible around them. When something is shortened, and
to what length, is decided by `window`; the log and people keep the whole.
"""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias
from unicodedata import ucd_3_2_0  # this version is the same in every Python

from holdfast.core.messages import clean
from holdfast.core.tools import Keep

READ_HEAD, READ_TAIL = 60_000, 20_000
"""Characters of a text that a digest looks at; what lies between is only counted."""
MOST_ROWS = 200
"""Rows of one list that a digest looks at, three quarters of them from its beginning."""
PORTION = 8
"""Rows of a column chosen together: a long list of ids must not leave its names no room."""
LONGEST_VALUE, LONGEST_LABEL = 80, 24
"""Characters of a value and of a key in a digest; longer ones lose their middle."""
DEEPEST = 60
"""Levels of JSON we parse: far from the interpreter's own limit, which varies with the caller."""
NOTICE = "[... truncated: showing "

__all__ = ["cut", "digest", "digest_arguments", "shorten_arguments"]


def cut(text: str, cap: int, keep: Keep = Keep.HEAD, more: str = "") -> str:
    """`cap` characters of `text` and a line with its whole length; `text` itself if it fits.

    `more` is a sentence for inside the notice, such as how to read the rest.
    """
    cap = max(cap, 0)
    if len(text) <= cap:
        return text
    ending = f" of {len(text)} chars{'. ' if more else ''}{more}]"
    if cap == 0:
        return f"{NOTICE}first 0{ending}"
    match keep:
        case Keep.HEAD:
            head = text[: seam(text, cap)]
            return f"{head}\n{NOTICE}first {len(head)}{ending}"
        case Keep.TAIL:
            tail = text[seam(text, len(text) - cap, step=1) :]
            return f"{NOTICE}last {len(tail)}{ending}\n{tail}"
        case Keep.ENDS:
            head = text[: seam(text, cap - cap // 2)]
            tail = text[seam(text, len(text) - cap // 2, step=1) :]
            return f"{head}\n{NOTICE}first {len(head)} and last {len(tail)}{ending}\n{tail}"


def digest(text: str, room: int) -> str:
    """One line of at most `room` characters with the values of `text` that later calls may need.

    A text that fits is kept as it is, but for its line breaks and runs of blanks; where anything
    was left out, the line ends with the length of the whole.
    """
    if len(text) <= max(READ_HEAD, room) and len(line := " ".join(text.split())) <= room:
        return clean(line)
    ending = f" … [of {len(text):,} chars]"
    if room <= len(ending):
        return ending.strip()[: max(room, 0)]
    head, tail = text[:READ_HEAD].strip(), text[max(READ_HEAD, len(text) - READ_TAIL) :]
    left = room - len(ending)
    line = json_line(json_in(head), left) or prose_line(f"{head} {tail}", left)
    return clean(line + ending)


def digest_arguments(arguments: str, room: int) -> str:
    """The arguments of a call as `key=value, key=value`: one line of at most `room` characters."""
    try:
        pairs = [(one_line(key), one_line(item)) for key, item in json_object(arguments).items()]
    except ValueError:
        return clean(middle_cut(one_line(arguments), room))

    def line(longest: int) -> str:
        return ", ".join(f"{key}={middle_cut(value, longest)}" for key, value in pairs)

    longest = largest(lambda size: len(line(size)) <= room, 8, room)
    return clean(middle_cut(line(longest), room))


def shorten_arguments(arguments: str, cap: int) -> str:
    """`arguments` as the text of a JSON object of at most `cap` characters, and 40 in any case.

    Long strings are cut first and name their length; then what is nested gives way, and last the
    later keys. What is not the text of a JSON object becomes `{}`.
    """
    cap = max(cap, 40)
    try:
        whole = json_object(arguments)
        return arguments if len(arguments) <= cap else shortened_object(whole, cap)
    except ValueError:
        return "{}"


def shortened_object(whole: dict[str, object], cap: int) -> str:
    def nested(depth: int, longest: int) -> str:
        return dumped(shortened(whole, longest, depth))

    def flat(keys: int) -> str:
        first = {key: shortened(whole[key], 0, 0) for key in list(whole)[:keys]}
        return dumped({**first, "…": f"{len(whole) - keys} more"})

    depth = next((depth for depth in (DEEPEST, 3, 2, 1) if len(nested(depth, 0)) <= cap), 0)
    if depth:
        return nested(depth, largest(lambda longest: len(nested(depth, longest)) <= cap, 0, cap))
    return flat(largest(lambda keys: len(flat(keys)) <= cap, 0, len(whole) - 1))


def shortened(value: object, longest: int, depth: int) -> object:
    """`value` with strings of at most about `longest` characters and `depth` levels of nesting."""
    match value:
        case str():
            notice = f"[... {len(value)} chars]"
            if len(value) <= max(longest, len(notice)):
                return value
            return value[: seam(value, max(longest - len(notice), 0))] + notice
        case dict() | list() if depth == 0 and value:
            return f"[... {len(value)} {'keys' if isinstance(value, dict) else 'items'}]"
        case dict():
            return {key: shortened(item, longest, depth - 1) for key, item in value.items()}
        case list():
            return [shortened(item, longest, depth - 1) for item in value]
        case _:
            return value


# Digests of JSON, read as tables: every list of records is one, with a row for each record, and
# what is in no list is the one row of the table "". Values are chosen by column, the most telling
# columns of all tables first, and written by row, so that what belongs together stays together
# and every key is said once: `orders(id,price)=A1,20|B7,35`.

Row: TypeAlias = dict[str, str]
Tables: TypeAlias = dict[str, dict[tuple[str, ...], Row]]
"""By name, the rows under all their keys and values: what is said twice is needed once."""
Column: TypeAlias = dict[int, str]
"""What stands under one key of one table, by row."""
Columns: TypeAlias = dict[str, dict[str, Column]]
Portion: TypeAlias = tuple[int, int, str, str, list[tuple[int, str]]]
"""Some cells of a column: rank, place, table, key and the cells with their rows."""


def json_line(value: object, room: int) -> str:
    root: Row = {}
    tables: Tables = {"": {("",): root}}
    read(value, "", root, "", tables)
    columns = {name: columns_of(list(rows.values())) for name, rows in tables.items()}
    portions = portions_of(columns)
    wish = room
    while len(line := tables_line(columns, portions, wish)) > room:  # prices are guesses
        wish -= len(line) - room
    return line


def read(value: object, key: str, row: Row, table: str, tables: Tables) -> None:
    """Put the leaves of `value` into `row`, and the lists in it into tables of their own."""
    if isinstance(value, str):
        shallow = value[:1] in ("{", "[") and table.count("[]") + key.count(".") < 8
        if shallow and (inner := json_in(value)) is not None:  # JSON in JSON, as MCP servers do
            read(inner, key, row, table, tables)
        elif value and value != row.get(""):  # a record may repeat the key it stands under
            row[key] = value
    elif isinstance(value, dict) and not has_data_for_keys(value):
        for name, item in value.items():
            name = middle_cut(name, LONGEST_VALUE)
            read(item, f"{key}.{name}" if key else name, row, table, tables)
    elif isinstance(value, dict | list):
        items = list(value.items()) if isinstance(value, dict) else [("", item) for item in value]
        if len(items) > MOST_ROWS:
            items = items[: MOST_ROWS * 3 // 4] + items[-MOST_ROWS // 4 :]
        table = f"{table}.{key}[]"
        rows = tables.setdefault(table, {})
        for name, item in items:
            row = {"": name} if name else {}
            read(item, "", row, table, tables)
            rows.setdefault((*row, *row.values()), row)
    elif value is not None:
        row[key] = str(value).lower()


def columns_of(rows: list[Row]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for number, row in enumerate(rows):
        for key, cell in row.items():
            columns.setdefault(key, {})[number] = cell
    return columns


def portions_of(tables: Columns) -> list[Portion]:
    """All columns in portions, those to choose first at the beginning."""
    portions: list[Portion] = []
    for table, columns in tables.items():
        for key, column in columns.items():
            cells = list(column.items())[: 1 if is_constant(column) else None]
            rank = weight(key.rpartition(".")[2]) + shape(cells[0][1])
            for start in range(0, len(cells), PORTION):
                portion = cells[start : start + PORTION]
                portions.append((rank + start // PORTION, len(portions), table, key, portion))
    portions.sort()
    return portions


def tables_line(tables: Columns, portions: list[Portion], room: int) -> str:
    """The best portions that fit, as far as their price can be known before they are written."""
    chosen: Columns = {}
    for _, _, table, key, cells in portions:
        if room < 4:
            break
        kept = chosen.get(table, {}).get(key, {})
        price = 0 if kept else len(label(key, tables[table])) + (1 if table else 3)
        if table and table not in chosen:
            price += len(name_of(table)) + 4
        for row, cell in cells:
            cell = middle_cut(" ".join(cell.split()), LONGEST_VALUE)
            if price + len(cell) < room:
                room -= price + len(cell) + 1
                price = 0
                kept[row] = cell
                chosen.setdefault(table, {})[key] = kept
    return "; ".join(written(name, tables[name], chosen[name]) for name in tables if name in chosen)


def written(table: str, columns: dict[str, Column], chosen: dict[str, Column]) -> str:
    labels = {key: label(key, columns) for key in columns if key in chosen}
    if not table:
        return "; ".join(f"{name}={chosen[key][0]}" for key, name in labels.items())
    varied = []
    for key in labels:
        if is_constant(columns[key]):
            labels[key] += "=" + next(iter(chosen[key].values()))
        else:
            varied.append(chosen[key])
    head = ",".join(labels.values())
    head = name_of(table) + (f"({head})" if head else "")
    shown = sorted({row for column in varied for row in column})
    if not shown:
        return head
    rows = [",".join(column.get(row, "") for column in varied).rstrip(",") for row in shown]
    hidden = len({row for column in columns.values() for row in column}) - len(shown)
    return f"{head}={'|'.join(rows)}" + (f" +{hidden}" if hidden else "")


def label(key: str, columns: dict[str, Column]) -> str:
    """The last part of `key`, or the last two where the last alone names two columns."""
    *parents, end = key.split(".")
    if parents and sum(other.rpartition(".")[2] == end for other in columns) > 1:
        end = f"{parents[-1]}.{end}"
    return middle_cut(" ".join(end.split()), LONGEST_LABEL)


def name_of(table: str) -> str:
    name = table.replace("[]", "").rpartition(".")[2]
    return middle_cut(" ".join(name.split()), LONGEST_LABEL)


def is_constant(column: Column) -> bool:
    return len(column) > 1 and len(set(column.values())) == 1


def has_data_for_keys(value: dict[str, object]) -> bool:
    """Records of one kind, each under its id: `{"A1": {"price": 3}, "B7": {"price": 5}}`."""
    if len(value) < 2:
        return False
    first, second, *_ = value.values()
    if not (isinstance(first, dict) and isinstance(second, dict) and first and second):
        return False
    return 2 * len(first.keys() & second.keys()) >= min(len(first), len(second))


# What is worth its room: a rank is the weight of a key plus the shape of a value; small is soon

TELLING = frozenset(
    "id ids uid uuid key code number no nr ref reference sku slug handle name file filename path"
    " folder url uri link href email phone user username account title date"
    " status state error amount price total balance".split()
)
WORDY = frozenset(
    "created updated modified timestamp description summary text content body notes html snippet"
    " etag avatar image icon".split()
)
NUMBER = re.compile(r"[-+$€£¥]{0,2}\d[\d.,]*[%€]?")
DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?|\d\d?([-/.])\d\d?\2\d{2,4}")
TIME = re.compile(r"\d\d?:\d\d|\d{4}-\d\d-\d\d[T ]\d\d")
CODE = re.compile(r"[A-Z]{2,12}")
PLACE = re.compile(r"[/\\@#]|\.[A-Za-z]\w{1,4}$")
ID, EXACT, NAMED, TIMED, WORD, SMALL, PROSE = 0, 1, 2, 3, 4, 5, 10


@lru_cache(maxsize=1024)
def weight(key: str) -> int:
    words = set(re.split(r"[_\-\s]", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()))
    return (-3 if not key or words & TELLING else 0) + (4 if words & WORDY else 0)


def shape(value: str) -> int:
    if TIME.match(value):
        return TIMED
    if " " in value:
        return PROSE if len(value) > 40 else NAMED if value.istitle() else WORD
    if NUMBER.fullmatch(value):
        return SMALL if len(value) < 3 else ID if len(value) > 4 and value.isdecimal() else NAMED
    if DATE.fullmatch(value):
        return EXACT
    if CODE.fullmatch(value):
        return NAMED
    if PLACE.search(value) or any(map(str.isdigit, value)):
        return PROSE if len(value) > 120 else ID if len(value) > 3 else WORD
    if value in ("true", "false"):
        return PROSE
    return NAMED if value[:1].isupper() else WORD


# Digests of plain text

VALUE = re.compile(
    r'"[^"\n]{2,60}"|“[^”\n]{2,60}”|「[^」\n]{1,60}」|《[^》\n]{1,60}》'  # what was quoted
    r"|[/~\u3040-\u9fff][\w./\\:~-]{0,80}\.[A-Za-z]\w{1,4}(?![\w/@.-])"  # a file of any script
    r"|\d{2,4}年\d\d?月(?:\d\d?日)?"
    r"|[^\s\"'<>(){}\[\];|“”「」《》\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]+"
)
SCRIPT = re.compile(r"(?is)<(script|style)\b.*?(?:</\1>|\Z)|<!--.*?(?:-->|\Z)")
TAG = re.compile(r"<(?:[^<>]{0,300}?\b(?:href|src)=[\"']([^\"'<>]{1,200})[\"'])?[^<>]{0,300}>")


def prose_line(text: str, room: int) -> str:
    """The first words of `text`, then what looks like a value, then the last words."""
    if text[:1] == "<":
        text = TAG.sub(r" \1 ", SCRIPT.sub(" ", text))
    text = "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))
    lead = word_seam(text, room // 4, step=-1)
    tail = word_seam(text, len(text) - room // 5, step=1)
    room -= lead + len(text) - tail + len("… …")
    chosen = []
    for _, at, value in sorted(values_in(text, lead, tail)):
        if len(value) < room:
            room -= len(value) + 1
            chosen.append((at, value))
    lead = word_seam(text, lead + max(room, 0), step=-1)
    middle = "".join(f" {value}" for at, value in sorted(chosen) if at >= lead)
    return f"{text[:lead]}…{middle} …{text[tail:]}".replace("\n", " ")


def values_in(text: str, start: int, end: int) -> list[tuple[int, int, str]]:
    """Rank, place and text of what looks like a value between `start` and `end`, each once."""
    values: dict[str, tuple[int, int, str]] = {}
    before = ""
    for found in VALUE.finditer(text, start, end):
        word, at = found[0], found.start()
        label, before = (f"{before} " if is_label(before) else ""), word
        alone = text[at - 1 : at] == "\n" == text[found.end() : found.end() + 1]
        if is_label(word) or (word.isalpha() and word.islower() and not (alone or label)):
            continue
        word = word.strip(".,:!?")
        rank = shape(word) - alone  # on its own line it is a value, as in a list of files
        if len(word) < 2 or word in values or (rank == WORD and not label):
            continue
        if rank == NAMED and word.istitle() and text[at - 2 : at - 1] in ".!?":
            rank = SMALL  # perhaps only the first word of a sentence
        values[word] = (rank, at, middle_cut(label + word, LONGEST_VALUE))
    return list(values.values())


def is_label(word: str) -> bool:
    return word[-1:] == ":" and word[:-1].isalpha()


# Where a text may be cut


def word_seam(text: str, at: int, *, step: int) -> int:
    """The nearest blank from `at` on, or a seam where words are long."""
    for place in range(at, at + LONGEST_VALUE * step, step):
        if text[place : place + 1].isspace():
            return place
    return seam(text, at, step=step)


def seam(text: str, at: int, *, step: int = -1) -> int:
    """The first place from `at` on, in steps, where a cut parts nothing that is drawn as one."""
    for place in range(at, at + 8 * step, step):
        if not is_joined(text, place):
            return place
    return at + step if is_pair(text, at) else at  # an endless pile of marks: cut it anyway


def is_joined(text: str, at: int) -> bool:
    if not 0 < at < len(text) or (after := text[at]) < "\u0300":
        return False
    return (
        is_pair(text, at)
        or ucd_3_2_0.category(after)[0] == "M"  # accents, vowel signs, variation selectors
        or "\u200d" in (text[at - 1], after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\U000e0100" <= after <= "\U000e01ef"  # more variation selectors
    )


def is_pair(text: str, at: int) -> bool:
    """Two surrogates around `at` which mean one character."""
    around = text[at - 1 : at + 1] if at > 0 else ""
    return len(around) == 2 and "\ud800" <= around[0] < "\udc00" <= around[1] <= "\udfff"


def middle_cut(text: str, room: int) -> str:
    """`text`, or both its ends with an ellipsis between, in at most `room` characters."""
    if len(text) <= room:
        return text
    if room <= 0:
        return ""
    tail = (room - 1) // 2
    head = text[: seam(text, room - 1 - tail)]
    return f"{head}…{text[seam(text, len(text) - tail, step=1) :]}"


def largest(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number from `low` to `high` that fits; `low` if none does."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


# JSON in and out


def refused(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


STRICT = json.JSONDecoder(parse_constant=refused)
AS_WRITTEN = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|[\[\]{},]', re.DOTALL)


def json_object(text: str) -> dict[str, object]:
    value = parsed(text, STRICT)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def json_in(text: str) -> object:
    """The list or object in `text`, also if it was cut or has one value a line; else None."""
    if text[:1] not in ("{", "["):
        return None
    for attempt in (str, as_list_of_lines, closed):
        try:
            return parsed(attempt(text), AS_WRITTEN)
        except ValueError:
            pass
    return None


def as_list_of_lines(text: str) -> str:
    return f"[{','.join(text.splitlines())}]"


def closed(text: str) -> str:
    """JSON that was cut: up to its last whole value, with what is open closed."""
    text = text.split(f"\n{NOTICE}", 1)[0]
    end = 0
    closers: list[str] = []
    whole: list[str] = []
    for mark in MARK.finditer(text):
        if mark[0] in "{[":
            closers.append("}" if mark[0] == "{" else "]")
        elif mark[0] == ",":
            end, whole = mark.start(), closers[::-1]
        elif mark[0] in "}]":
            closers = closers[:-1]
            end, whole = mark.end(), closers[::-1]
    return text[:end] + "".join(whole)


def parsed(text: str, decoder: json.JSONDecoder) -> object:
    if text.count("[") + text.count("{") > DEEPEST and depth_of(text) > DEEPEST:
        raise ValueError("nested too deeply")
    value: object = decoder.decode(text)
    return value


def depth_of(text: str) -> int:
    depth = deepest = 0
    for mark in MARK.finditer(text):
        depth += (mark[0] in "[{") - (mark[0] in "]}")
        deepest = max(deepest, depth)
    return deepest


def dumped(value: object) -> str:
    return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def one_line(value: object) -> str:
    return " ".join((value if isinstance(value, str) else dumped(value)).split())
