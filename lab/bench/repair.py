"""How often is a mended argument not what was meant?

    python lab/bench/repair.py DATA_FOLDER [PAIRS.json ...]

Reads JSONTestSuite and the calls of 200 real runs from the folder. The arguments of real calls
are damaged in known ways, so the truth is known: a repair is right, refused, or silently wrong,
and only the last one does harm. A file of pairs holds a list of [broken text, what is expected].
json-repair is measured beside our rules where it is installed.
"""

import gzip
import importlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.models.repair import repaired

SUITE = "json/JSONTestSuite"
RUNS = "transcripts/tau-bench-gpt-4o-airline.json.gz"
ARGUMENTS = 60
"""Different arguments that are damaged: some thousand texts a damage where it has a place."""
VERDICTS = ("right", "refused", "wrong")

Mend: TypeAlias = Callable[[str], object]
"""A broken text in; the object it means, or None."""
REFUSED = None


def ours(text: str) -> object:
    mended = repaired(text)
    return REFUSED if mended is None else json.loads(mended.arguments)


def ways() -> dict[str, Mend]:
    found: dict[str, Mend] = {"ours": ours}
    try:
        loads = importlib.import_module("json_repair").loads
    except ModuleNotFoundError:
        print("json-repair is not installed here, so only our rules are measured.")
        return found

    def theirs(text: str) -> object:
        try:
            value = loads(text)
        except (ValueError, RecursionError):
            return REFUSED
        return value if isinstance(value, dict) else REFUSED

    return found | {"json-repair": theirs}


# --- damage ---------------------------------------------------------------------------------


def without_each(text: str, mark: str) -> Iterator[str]:
    """Only where the loss shows: in a value it leaves another text, and nobody could tell."""
    for at in places(text, mark):
        try:
            json.loads(text[:at] + text[at + 1 :])
        except ValueError:
            yield text[:at] + text[at + 1 :]


def places(text: str, mark: str) -> list[int]:
    return [at for at, character in enumerate(text) if character == mark]


DAMAGES: dict[str, Callable[[str], Iterator[str]]] = {
    "cut anywhere": lambda text: (text[:at] for at in range(1, len(text))),
    "last bracket lost": lambda text: iter((text[:-1],)),
    "bracket too many": lambda text: iter((text + "}",)),
    "a quote lost": lambda text: without_each(text, '"'),
    "a quote doubled": lambda text: (f'{text[:at]}"{text[at:]}' for at in places(text, '"')),
    "quote in a value": lambda text: (
        f'{text[:at]} "so" {text[at + 1 :]}' for at in places(text, " ") if text[at - 1] not in ":,"
    ),
    "a comma lost": lambda text: without_each(text, ","),
    "a colon lost": lambda text: without_each(text, ":"),
    "trailing comma": lambda text: iter((text[:-1] + ",}",)),
    "as Python": lambda text: iter((repr(json.loads(text)),)),
    "apostrophes": lambda text: iter((text.replace('"', "'"),)),
    "doubled braces": lambda text: iter((f"{{{text}}}",)),
    "as a string": lambda text: iter((json.dumps(text),)),
    "fenced": lambda text: iter((f"```json\n{text}\n```",)),
    "in prose": lambda text: iter((f"Here is the call:\n{text}\nI hope it works.",)),
    "raw line break": lambda text: (
        f"{text[:at]}\n{text[at + 1 :]}" for at in places(text, " ") if text[at - 1] not in ":,"
    ),
}


def real_arguments(folder: Path) -> list[str]:
    with gzip.open(folder / RUNS, "rt") as file:
        runs: list[dict[str, Any]] = json.load(file)
    written = {
        json.dumps(json.loads(call["function"]["arguments"])): None
        for run in runs
        for message in run["traj"]
        for call in message.get("tool_calls") or ()
    }
    long_enough = [text for text in written if len(text) > 2]
    return long_enough[:: max(1, len(long_enough) // ARGUMENTS)][:ARGUMENTS]


def judged(mend: Mend, broken: str, meant: object) -> str:
    value = mend(broken)
    return "refused" if value is REFUSED else "right" if same(broken, value, meant) else "wrong"


def same(broken: str, value: object, meant: object) -> bool:
    """A line break or quote that the damage put into a value is expected there."""
    if value == meant:
        return True
    spoken = json.dumps(value).replace("\\n", " ").replace(' \\"so\\" ', " ")
    return ("\n" in broken or '"so"' in broken) and json.loads(spoken) == meant


def show(title: str, verdicts: dict[str, Counter[str]]) -> None:
    for way, counted in verdicts.items():
        figures = "  ".join(f"{verdict} {counted[verdict]:6}" for verdict in VERDICTS)
        print(f"{title:18} {way:12} {figures}")
        title = ""


def main(folder: Path, pairs: list[Path]) -> None:
    mends = ways()
    if not (folder / SUITE).is_dir():
        print(f"There is no JSONTestSuite in {folder}: it is looked for in {SUITE}.")
        return
    suite = sorted((folder / SUITE).glob("[yn]_*.json"))
    texts = {path.stem: path.read_bytes().decode(errors="surrogateescape") for path in suite}
    print("JSONTestSuite: objects that must be read, as they are")
    for way, mend in mends.items():
        objects = {
            name: json.loads(text)
            for name, text in texts.items()
            if name.startswith("y_") and isinstance(json.loads(text), dict)
        }
        read = sum(mend(texts[name]) == value for name, value in objects.items())
        print(f"  {way:12} {read} of {len(objects)}")
    print("JSONTestSuite: texts that are not JSON, and were made an object")
    for way, mend in mends.items():
        made = {name: mend(text) for name, text in texts.items() if name.startswith("n_")}
        taken = {name: value for name, value in made.items() if value is not REFUSED}
        print(f"  {way:12} {len(taken)} of {len(made)}")
        for name, value in taken.items():
            print(f"    {texts[name][:40]!r:44} {json.dumps(value)[:50]}")
    arguments = real_arguments(folder)
    print(f"{len(arguments)} real arguments, damaged")
    total = {way: Counter[str]() for way in mends}
    seconds = dict.fromkeys(mends, 0.0)
    for name, damage in DAMAGES.items():
        verdicts = {way: Counter[str]() for way in mends}
        for way, mend in mends.items():
            begun = time.process_time()
            for text in arguments:
                verdicts[way].update(
                    judged(mend, broken, json.loads(text)) for broken in damage(text)
                )
            seconds[way] += time.process_time() - begun
            total[way] += verdicts[way]
        show(name, verdicts)
    show("all", total)
    for way, spent in seconds.items():
        print(f"  {way:12} {1e6 * spent / total[way].total():.0f} µs a text")
    for path in pairs:
        expected = [pair for pair in json.loads(path.read_text()) if isinstance(pair[1], dict)]
        show(
            path.stem,
            {
                way: Counter(judged(mend, broken, meant) for broken, meant in expected)
                for way, mend in mends.items()
            },
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
