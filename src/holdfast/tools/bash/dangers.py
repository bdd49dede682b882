"""Commands that destroy what cannot be restored, or tell the world what cannot be taken back.

Decided by the words of a command as a shell would see them, never by a text that looks like one:
`echo "rm -rf /"` destroys nothing. `git commit --amend` is no danger: the commit it replaces stays in
the reflog, and nothing that was not committed is lost.
"""

from collections.abc import Iterator

from holdfast.tools.bash import git
from holdfast.tools.bash.options import has, operands_of
from holdfast.tools.bash.words import Word

ALWAYS = {
    "shred": "overwrites files so that they cannot be restored",
    "truncate": "cuts files off",
    "wipefs": "erases a file system",
    "fdisk": "changes the partitions of a disk",
    "parted": "changes the partitions of a disk",
    "sgdisk": "changes the partitions of a disk",
    "blkdiscard": "erases a disk",
    "killall": "ends every process of a name",
    "pkill": "ends every process that matches",
    "shutdown": "ends the whole system",
    "reboot": "ends the whole system",
    "halt": "ends the whole system",
    "poweroff": "ends the whole system",
}
STEPS = (
    (("npm", "pnpm", "yarn", "bun"), ("publish",), "publishes a package"),
    (("npm",), ("unpublish",), "takes a package back"),
    (("twine",), ("upload",), "publishes a package"),
    (
        ("cargo", "poetry", "uv", "flit", "hatch", "pdm", "lerna"),
        ("publish",),
        "publishes a package",
    ),
    (("gem",), ("push",), "publishes a package"),
    (("docker", "podman"), ("push",), "publishes an image"),
    (("docker", "podman"), ("prune",), "deletes everything that is not in use"),
    (("docker", "podman"), ("volume", "rm"), "deletes a volume with its data"),
    (("kubectl", "oc"), ("delete",), "deletes from a cluster"),
    (("kubectl", "oc"), ("drain",), "empties a machine of a cluster"),
    (("helm",), ("uninstall",), "deletes from a cluster"),
    (("helm",), ("delete",), "deletes from a cluster"),
    (("terraform", "tofu", "terragrunt", "pulumi", "cdk"), ("destroy",), "destroys infrastructure"),
    (("systemctl",), ("poweroff",), "ends the whole system"),
    (("systemctl",), ("reboot",), "ends the whole system"),
    (("systemctl",), ("halt",), "ends the whole system"),
    (("gh",), ("repo", "delete"), "deletes a repository"),
    (("gh",), ("release", "delete"), "deletes a release"),
    (("aws",), ("s3", "rm"), "deletes from a bucket"),
    (("aws",), ("s3", "rb"), "deletes a bucket"),
)
"""Programs, the words of theirs that matter, in this order, and what that does."""


def destroys(name: str, words: tuple[Word, ...]) -> Iterator[str]:
    """Sentences about what this command destroys."""
    given = words[1:]
    what = ALWAYS.get(name) or known_step(name, given)
    if name.startswith(("mkfs", "mkswap")):
        what = "makes a new file system where another may be"
    elif name == "git":
        what = git.destroys(given)
    elif name in CHECKS:
        what = CHECKS[name](given)
    if what:
        yield f"'{name}' {what}."


def known_step(name: str, given: tuple[Word, ...]) -> str:
    operands = [word.value for word in given if not word.source.startswith("-")]
    for programs, steps, what in STEPS:
        if name not in programs:
            continue
        rest = iter(operands)
        if all(any(step == operand for operand in rest) for step in steps):
            return what
        if None in operands[: len(steps)]:
            return "is given a command that is known only when it runs"
    return ""


def removes(given: tuple[Word, ...]) -> str:
    if has(given, "rR", "recursive"):
        return "deletes folders with all that is in them"
    if has(given, "f", "force"):
        return "deletes without asking"
    if any(is_wide(word) for word in operands_of(given)):
        return "deletes files that are not named one by one"
    return ""


def is_wide(word: Word) -> bool:
    return word.value is None or word.globs or word.value.strip("./~") == ""


def recursive(given: tuple[Word, ...]) -> str:
    return "changes whole folders" if has(given, "R", "recursive") else ""


def copies_blocks(given: tuple[Word, ...]) -> str:
    if any(word.value is None or word.value.startswith("of=") for word in given):
        return "writes over its target from the first byte on"
    return ""


def kills(given: tuple[Word, ...]) -> str:
    """Process 1, every process (-1), a process that is not named by its number."""
    if has(given, "lL", "list", "table"):
        return ""
    targets = [w.value for w in given if w.value is None or w.value.lstrip("-").isdigit()]
    if given and given[0].source.startswith("-"):  # the signal
        targets = targets[1:] if targets and given[0].value == targets[0] else targets
    if any(target in ("1", "-1", "0") for target in targets):
        return "ends processes of the whole system"
    return ""


def finds(given: tuple[Word, ...]) -> str:
    return "deletes what it finds" if any(word.value == "-delete" for word in given) else ""


def synchronises(given: tuple[Word, ...]) -> str:
    hit = any((word.value or "").startswith(("--del", "--remove-source")) for word in given)
    return "deletes files that are not at the source" if hit else ""


def plans(given: tuple[Word, ...]) -> str:
    operands = [word.value for word in given]
    if "destroy" in operands or "-destroy" in operands or "--destroy" in operands:
        return "destroys infrastructure"
    if "apply" in operands and any(o in operands for o in ("-auto-approve", "--auto-approve")):
        return "changes infrastructure without asking"
    return ""


def contains(given: tuple[Word, ...]) -> str:
    """docker and podman, besides what `STEPS` has."""
    operands = [word.value for word in given if not word.source.startswith("-")]
    if {"rm", "rmi"} & set(operands) and has(given, "f", "force"):
        return "deletes by force"
    if "down" in operands and has(given, "v", "volumes"):
        return "deletes volumes with their data"
    return known_step("docker", given)


def archives(given: tuple[Word, ...]) -> str:
    if any((word.value or "").startswith("--rem") for word in given):
        return "deletes the files that it packs"
    runs = ("--to-c", "--checkpoint-a", "--use", "--rsh", "--info", "-I", "-F")
    if any((word.value or "").startswith(runs) for word in given):
        return "runs a program that its options name"
    return ""


def crontab(given: tuple[Word, ...]) -> str:
    return "deletes all scheduled commands" if has(given, "r", "remove") else ""


def levels(given: tuple[Word, ...]) -> str:
    ends = any(word.value in ("0", "6") for word in given)
    return "ends the whole system" if ends else ""


CHECKS = {
    "rm": removes,
    "unlink": removes,
    "chmod": recursive,
    "chown": recursive,
    "chgrp": recursive,
    "dd": copies_blocks,
    "kill": kills,
    "find": finds,
    "rsync": synchronises,
    "terraform": plans,
    "tofu": plans,
    "docker": contains,
    "podman": contains,
    "tar": archives,
    "crontab": crontab,
    "init": levels,
    "telinit": levels,
}
