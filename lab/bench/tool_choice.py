"""How often is the right tool among those that are chosen by words?

    python lab/bench/tool_choice.py DATA_FOLDER

Reads LocalCowork's registry of 83 tools and its prompts: one hundred that want one tool, and fifty
that want several. For each number of tools that are offered it counts the prompts for which the
right ones are all among them, and the tokens of the definitions.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.core.tokens import Gauge, size_of_tools
from holdfast.core.tools import ToolSpec
from holdfast.tools.choice import ranked

MOST = (1, 5, 10, 15, 20, 25, 30)
REGISTRY, SINGLE, CHAINS = "mcp-tool-registry.yaml", "tool-selection.json", "multi-step.json"


def registry(text: str) -> Iterator[ToolSpec]:
    """The tools of the registry. It is YAML of one shape, so no reader of YAML is needed."""
    for block in re.split(r"^ *- name: ", text, flags=re.MULTILINE)[1:]:
        name = block.split("\n", 1)[0].strip()
        said = re.search(r"^ *description: (.*)$", block, re.MULTILINE)
        fields = re.findall(
            r'^ +(\w+): \{ type: (\w+).*?(?:description: "(.*?)")? *\}', block, re.M
        )
        properties = {field: {"type": kind, "description": words} for field, kind, words in fields}
        schema = json.dumps({"type": "object", "properties": properties})
        yield ToolSpec(
            name=name, description=said[1].strip('" ') if said else "", parameters=schema
        )


def prompts(folder: Path) -> Iterator[tuple[str, str, set[str]]]:
    for test in json.loads((folder / SINGLE).read_text())["tests"]:
        yield "single", test["prompt"], {test["expectedTool"]}
    for test in json.loads((folder / CHAINS).read_text())["tests"]:
        yield "chain", test["prompt"], set(test["expectedChain"])


def last_place(wanted: set[str], order: Sequence[ToolSpec]) -> int:
    """How many tools must be offered until all that are wanted are among them."""
    places = {tool.name: place for place, tool in enumerate(order, 1)}
    return max(places.get(name, len(order) + 1) for name in wanted)


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path("missing")
    if not (folder / REGISTRY).is_file():
        print(f"skipped: there is no {REGISTRY} in {folder}; give the folder as an argument.")
        return
    tools = list(registry((folder / REGISTRY).read_text()))
    gauge = Gauge()
    print(f"{len(tools)} tools, {gauge.weigh(size_of_tools(tools))} tokens")
    places: dict[str, list[int]] = {}
    misses: list[tuple[int, str, set[str]]] = []
    for kind, prompt, wanted in prompts(folder):
        place = last_place(wanted, ranked(prompt, tools))
        places.setdefault(kind, []).append(place)
        if kind == "single" and place > 15:
            misses.append((place, prompt, wanted))
    for kind, found in places.items():
        shares = (f"@{most} {sum(p <= most for p in found) / len(found):.0%}" for most in MOST)
        print(f"{kind:8}{len(found):4} prompts   {'  '.join(shares)}")
    size = sum(gauge.weigh(size_of_tools(tools[at : at + 15])) for at in range(0, 75, 15)) / 5
    print(f"15 tools take about {size:.0f} tokens")
    for place, prompt, wanted in sorted(misses, key=lambda miss: -miss[0]):
        print(f"  missed at {place}: {prompt!r} wants {', '.join(wanted)}")


if __name__ == "__main__":
    main(sys.argv[1:])
