"""The one line that stands for a result which has left the window.

It is no summary, but the values that later calls need (ids, paths, names, amounts, dates, codes)
with as little as possible around them. When a result leaves, and how much room its digest gets,
is decided by `window`; the log and people keep the whole.
"""

import re
from functools import lru_cache
from typing import TypeAlias

from holdfast.core.cut import middle_cut, seam
from holdfast.core.jsontext import json_in
from holdfast.core.messages import clean

READ_HEAD, READ_TAIL = 60_000, 20_000
"""Characters of a text that a digest looks at; what lies between is only counted."""
MOST_ROWS = 200
"""Rows of one list that a digest looks at, three quarters of them from its beginning."""
PORTION = 8
"""Rows of a column chosen together: a long list of ids must not leave its names no room."""
LONGEST_VALUE, LONGEST_LABEL = 80, 24
"""Characters of a value and of a key in a digest; longer ones lose their middle."""


def digest(text: str, room: int) -> str:
    """One line of at most `room` characters with the values of `text` that later calls may need.

    A text that fits is kept as it is, but for its line breaks and runs of blanks; where anything
    was left out, the line ends with the length of the whole.
    """
    if len(text) <= max(READ_HEAD, room) and len(line := " ".join(text.split())) <= room:
        return clean(line)
    ending = f" … [of {len(text):,} chars]"
    if room < len(ending) + 12:
        return ending.strip()[: max(room, 0)]
    head, tail = text[:READ_HEAD].strip(), text[max(READ_HEAD, len(text) - READ_TAIL) :]
    left = room - len(ending)
    line = json_line(json_in(head), left) or prose_line(f"{head} {tail}", left)
    return clean(line + ending)


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
            cells = list(column.items())[: 1 if is_constant(column, columns) else None]
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
    if len(labels) > 1 and "" in labels:
        labels[""] = "key"
    varied = []
    for key in labels:
        if is_constant(columns[key], columns):
            labels[key] += "=" + next(iter(chosen[key].values()))
        else:
            varied.append(chosen[key])
    head = ",".join(labels.values())
    head = name_of(table) + (f"({head})" if head else "")
    shown = sorted({row for column in varied for row in column})
    if not shown:
        return head
    rows = [",".join(column.get(row, "") for column in varied).rstrip(",") for row in shown]
    hidden = len(set().union(*columns.values())) - len(shown)
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


def is_constant(column: Column, columns: dict[str, Column]) -> bool:
    """Every row of the table says the same here."""
    if len(column) < 2 or len(set(column.values())) > 1:
        return False
    return len(column) == len(set().union(*columns.values()))


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
    if len(text) <= room:
        return text.replace("\n", " ")
    lead = word_seam(text, room // 4, step=-1)
    tail = word_seam(text, len(text) - room // 5, step=1)
    room -= lead + len(text) - tail + len("… …")
    chosen = []
    for _, at, value in sorted(values_in(text, lead, tail)):
        if len(value) < room:
            room -= len(value) + 1
            chosen.append((at, value))
    lead = word_seam(text, lead + max(room, 0), step=-1)
    shown = [value for at, value in sorted(chosen) if at >= lead]
    middle = f" {' '.join(shown)} …" if shown else ""
    return f"{text[:lead]}…{middle}{text[tail:]}".replace("\n", " ")


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


def word_seam(text: str, at: int, *, step: int) -> int:
    """The nearest end of a word from `at` on, or a seam where words are long."""
    for place in range(at, at + LONGEST_VALUE * step, step):
        if 0 < place < len(text) and text[place] in " \n，。；、":
            return place
    return seam(text, at, step=step)
