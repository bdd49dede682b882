"""Every client scenario of the official conformance suite, one after the other: all at once, as the
suite would run them itself, they take each other's time away and fail by it.

    python lab/mcp_conformance/scenarios.py FOLDER

FOLDER is where npm installed the packages of `package.json`. The end says how many passed, and how
many failed that `baseline.yml` knows of; whatever else happens is a failure of this program too.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
SECONDS = 90
NAME = re.compile(r"^  - (\S+)", re.MULTILINE)


def suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    modules = folder / "node_modules"
    program = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    line = [str(modules / ".bin" / "node"), str(program), *arguments]
    return subprocess.run(
        line, cwd=folder, capture_output=True, text=True, timeout=2 * SECONDS, check=False
    )


def played(folder: Path, scenario: str) -> str:
    """How it went: `passed`, `failed as expected` or `failed`."""
    client = f"{sys.executable} {HERE / 'client.py'}"
    done = suite(
        folder, "client", "--command", client, "--scenario", scenario,
        "--timeout", str(SECONDS * 1_000), "--expected-failures", str(HERE / "baseline.yml"),
    )  # fmt: skip
    if done.returncode:
        print(done.stdout[-4_000:], done.stderr[-2_000:])
        return "failed"
    return "failed as expected" if "OVERALL: FAILED" in done.stdout + done.stderr else "passed"


def main(folder: Path) -> int:
    listed = suite(folder, "list", "--client")
    scenarios = NAME.findall(listed.stdout)
    if not scenarios:
        print(f"The suite lists no scenarios: {listed.stderr.strip()}")
        return 1
    count: Counter[str] = Counter()
    for scenario in scenarios:
        how = played(folder, scenario)
        count[how] += 1
        print(f"{scenario}: {how}", flush=True)
    print(", ".join(f"{number} {how}" for how, number in count.items()))
    return int(count["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
