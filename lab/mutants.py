"""Is the proof any good? Break the heart on purpose, one line at a time, and see who notices.

    python lab/mutants.py            # every mutant below; exits 1 if one survives
    python lab/mutants.py cancel     # those whose name contains a word

Each mutant is applied to a copy of the sources, in which the simulation runs and then the tests.
A mutant that nobody notices means that a promise has no test.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
RUNS = "4000"


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    line: str
    """Must occur exactly once in the file."""
    instead: str


MUTANTS = (
    Mutant(
        "cancel leaves open calls without a result",
        "machine.py",
        "        return given_up(state, run) if run.unanswered else cancelled(run)",
        "        return cancelled(run)",
    ),
    Mutant(
        "evicting the user's task does not pin it",
        "eviction.py",
        "    head += pinned[:1]",
        "    head += []",
    ),
    Mutant(
        "eviction splits a call from its results",
        "window.py",
        "        if position == before or not isinstance(body[position].message, ToolMessage):",
        "        if True:",
    ),
    Mutant(
        "an overflow teaches nothing",
        "rounds.py",
        "        gauge = gauge.refused(waiting.size, most)",
        "        pass",
    ),
    Mutant(
        "results are not cut",
        "rounds.py",
        "    text = cut(whole, cap, keep, more)",
        "    text = whole",
    ),
    Mutant(
        "the conclusion still offers tools",
        "machine.py",
        "        tools=run.offered if purpose is Purpose.WORK else (),",
        "        tools=run.offered,",
    ),
    Mutant(
        "a silent reply is an answer",
        "answers.py",
        "    if not text.strip():",
        "    if False:",
    ),
    Mutant(
        "an unsafe tool runs again after a crash",
        "machine.py",
        "            if heard or (each.started and not may_run_again(each)):",
        "            if heard:",
    ),
    Mutant(
        "words after a crash are heard when the open calls have run",
        "machine.py",
        "            if heard or (each.started and not may_run_again(each)):",
        "            if each.started and not may_run_again(each):",
    ),
    Mutant(
        "a call is charged again after a crash",
        "rounds.py",
        "            usage = more_than(each.charged, usage)",
        "            pass",
    ),
    Mutant(
        "the time a person takes is the run's",
        "fold.py",
        "    return waited(state, event.at) if event.by == USER else passed(state, event.at)",
        "    return passed(state, event.at)",
    ),
    Mutant(
        "a late result is taken for the current one",
        "rounds.py",
        "    each = next((one for one in run.unanswered if one.call.id == event.call_id), None)",
        "    each = next(iter(run.unanswered), None)",
    ),
    Mutant(
        "the limit of rounds is not looked at",
        "limits.py",
        "        if self.rounds >= limits.rounds:",
        "        if False:",
    ),
    Mutant(
        "failed requests do not count as rounds",
        "fold.py",
        "    extra = event.purpose is Purpose.CONCLUDE",
        "    extra = True",
    ),
    Mutant(
        "a forced answer is not checked",
        "machine.py",
        "    text = checked(clean(reply.text), run.ledger, shown(state))",
        "    text = reply.text",
    ),
    Mutant(
        "a call cut by the output limit is run",
        "history.py",
        "        if reply.finish is Finish.LENGTH:",
        "        if False:",
    ),
    Mutant(
        "a late reply to an older request is used",
        "rounds.py",
        "    if run.waiting is None or run.waiting.ask != event.ask:\n        # The",
        "    if run.waiting is None:\n        # The",
    ),
    Mutant(
        "the same call may be made for ever",
        "guards.py",
        "    if times < patience.repeat_stopped or evidence.barren < stop_after(patience):",
        "    if True:",
    ),
    Mutant(
        "eviction below the gate is allowed",
        "limits.py",
        "        if self.budget.evicts and self.budget.evict_below <= self.budget.min_round + result:",
        "        if False:",
    ),
    Mutant(
        "steering words are dropped when the run stops",
        "machine.py",
        "        return FollowedUp() if run.queued else None",
        "        return None",
    ),
    Mutant(
        "what was under way at a cancel is called not run",
        "calls.py",
        "    if each.started and not only_reads(each):\n        outcome",
        "    if False:\n        outcome",
    ),
    Mutant(
        "a mail is sent by another server's tool",
        "tools.py",
        '    alike = [tool for tool in known if dotted(tool.name).rsplit(".", 1)[-1] == bare]',
        '    alike = [t for t in known if dotted(t.name).split(".")[-1] == bare.split(".")[-1]]',
    ),
    Mutant(
        "the digest is written anew every round",
        "room.py",
        "    if budget.evicts and room < budget.evict_below:",
        "    if budget.evicts:",
    ),
    Mutant(
        "the gate is open",
        "room.py",
        "    if room < budget.min_round or run.evidence.overflows > settings.limits.overflows:",
        "    if run.evidence.overflows > settings.limits.overflows:",
    ),
    Mutant(
        "a crash in the middle of a step is not gone on from",
        "machine.py",
        "    state, followed = settle(replay(events, state))\n    return Step(state, (*events",
        "    state, followed = replay(events, state), ()\n    return Step(state, (*events",
    ),
)


def broken_copy(folder: Path, mutant: Mutant) -> Path:
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    file = folder / "src" / "holdfast" / "core" / mutant.file
    source = file.read_text()
    if source.count(mutant.line) != 1:
        sys.exit(f"{mutant.file} does not hold this line once: {mutant.line.strip()}")
    file.write_text(source.replace(mutant.line, mutant.instead))
    return folder


def noticed(mutant: Mutant) -> str:
    """Who noticed the mutant; empty if nobody did."""
    with TemporaryDirectory() as name:
        folder = broken_copy(Path(name), mutant)
        environment = {**os.environ, "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}"}
        python = (sys.executable, "-B", "-m")
        watchers = {
            "simulation": (*python, "holdfast.testing.simulate", "--runs", RUNS),
            "tests": (*python, "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/core"),
        }
        found = []
        for watcher, command in watchers.items():
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                found.append(f"{watcher} ({reason(done.stdout)})")
        return ", ".join(found)


def reason(output: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith(("BROKEN", "FAILED"))]
    return lines[0].split(" - ")[0][:90] if lines else "crashed"


def main() -> int:
    words = sys.argv[1:]
    asked = [mutant for mutant in MUTANTS if any(word in mutant.name for word in words or [""])]
    if not asked:
        print(f"No mutant's name contains {' or '.join(map(repr, words))}.")
        return 2
    survivors = 0
    for mutant in asked:
        by = noticed(mutant)
        survivors += not by
        print(
            f"{'noticed ' if by else 'SURVIVED'}  {mutant.name}: {by or 'nobody noticed'}",
            flush=True,
        )
    print(f"{len(asked) - survivors} of {len(asked)} mutants noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
