"""Files that well-known commands write, as far as their words name them.

Files a program writes by itself are not known here; the sandbox holds those.
"""

from collections.abc import Iterator

from holdfast.tools.bash import git
from holdfast.tools.bash.options import has, operands_of
from holdfast.tools.bash.words import Word

CHANGES = {"rm", "rmdir", "unlink", "touch", "mkdir", "chmod", "chown", "chgrp", "shred", "truncate",
           "mkfifo"}  # fmt: skip
COPIES = {"cp", "mv", "install", "ln"}
OUTPUTS = {
    "sort": ("-o", "--output"),
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document"),
    "gcc": ("-o",),
    "cc": ("-o",),
    "time": ("-o", "--output"),
    "git": ("--output",),
}
"""Options whose value is a file that is written."""


def written(name: str, words: tuple[Word, ...]) -> Iterator[str]:
    """Files and folders that the command changes."""
    given = words[1:]
    operands = operands_of(given)
    if name in CHANGES:
        skips = 1 if name in ("chmod", "chown", "chgrp") else 0
        yield from (word.value for word in operands[skips:] if word.value is not None)
    elif name == "mv":
        yield from (word.value for word in operands if word.value is not None)
    elif name == "tee":
        yield from (word.value for word in operands if word.value is not None)
    elif name == "sed" and has(given, "i", "in-place"):
        yield from (word.value for word in operands[1:] if word.value is not None)
    elif name == "dd":
        yield from (w.value[3:] for w in given if w.value and w.value.startswith("of="))
    if name in COPIES | set(OUTPUTS):
        yield from (file for file in replaced(name, words) if file is not None)


def replaced(name: str, words: tuple[Word, ...]) -> Iterator[str | None]:
    """Files whose content would be lost if they were there; None for one without a name yet."""
    given = words[1:]
    if name == "tee" and not any(word.value in ("-a", "--append") for word in given):
        yield from (word.value for word in operands_of(given))
    elif name in COPIES:
        yield from copied(name, given)
    elif name in OUTPUTS:
        yield from named(OUTPUTS[name], given)
    if name == "git":
        # One word behind `checkout` is a branch, or a file that is taken from the last commit.
        _, rest = git.command_of(given)
        if rest and rest[0].value == "checkout":
            yield from (word.value for word in operands_of(rest[1:]) if word.value is not None)


def copied(name: str, given: tuple[Word, ...]) -> Iterator[str | None]:
    """Where copies end up: at the target, or in it under the name of their source."""
    if any(word.value in ("-n", "--no-clobber") for word in given):
        return
    if name == "ln" and not has(given, "f", "force"):
        return
    if name == "install" and has(given, "d", "directory"):
        return
    folders = list(named(("-t", "--target-directory"), given))
    operands = operands_of(given)
    if folders:
        target, sources = folders[0], [o for o in operands if o.value != folders[0]]
    elif len(operands) < 2:
        return
    else:
        target, sources = operands[-1].value, operands[:-1]
    if target is None:
        yield None
        return
    yield target
    for source in sources:
        if source.value is not None and not source.globs:
            yield f"{target.rstrip('/')}/{source.value.rstrip('/').rpartition('/')[2]}"


def named(options: tuple[str, ...], given: tuple[Word, ...]) -> Iterator[str | None]:
    """The values of these options: `-o file`, `-ofile`, `--output file`, `--output=file`."""
    for at, word in enumerate(given):
        value = word.value or ""
        for option in options:
            if value == option:
                yield given[at + 1].value if at + 1 < len(given) else None
            elif option.startswith("--") and "=" in value and value.startswith("--o"):
                # Long options may be cut short: `--outp=file`.
                long, _, file = value.partition("=")
                if option.startswith(long):
                    yield file
            elif not option.startswith("--") and value.startswith(option):
                yield value[len(option) :]
