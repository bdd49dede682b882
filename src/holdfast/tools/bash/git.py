"""What git would do: which of its commands it is, what it destroys, whether it only reads."""

from holdfast.tools.bash.options import has, operands_of
from holdfast.tools.bash.syntax import Word

QUIET = {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"}
"""Options in front of the command that change nothing a rule would care for."""
VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env",
          "--super-prefix", "--attr-source"}  # fmt: skip
READS = {
    "status", "diff", "log", "show", "rev-parse", "rev-list", "ls-files", "ls-tree", "blame",
    "annotate", "describe", "shortlog", "cat-file", "name-rev", "merge-base", "for-each-ref",
    "show-ref", "count-objects", "whatchanged", "grep", "check-ignore", "diff-tree", "var",
    "version", "help", "cherry", "range-diff", "show-branch",
}  # fmt: skip
WRITING = ("output", "ext-diff", "textconv", "open-files-in-pager", "exec", "filters", "web",
           "paginate")  # fmt: skip
"""Options with which even these write, or start other programs."""
FORCED = "overwrites what others may have"


def command_of(given: tuple[Word, ...]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """The options in front of git's command, and the command with its arguments."""
    at = 0
    while at < len(given) and (given[at].value or "").startswith("-"):
        at += 2 if given[at].value in VALUED else 1
    return given[:at], given[at:]


def destroys(given: tuple[Word, ...]) -> str:
    before, rest = command_of(given)
    if any("alias." in word.source for word in before):
        return "is given a new command of its own"
    if not rest:
        return ""
    if rest[0].value is None:
        return "is given a command that is known only when it runs"
    check = CHECKS.get(rest[0].value)
    return check(rest[1:]) if check else ""


def only_reads(given: tuple[Word, ...]) -> bool:
    before, rest = command_of(given)
    if not {word.value for word in before} <= QUIET | {"--version"}:
        return False
    if not rest:
        return any(word.value == "--version" for word in before)
    name, words = rest[0].value or "", rest[1:]
    if has(words, "O" if name == "grep" else "", *WRITING):
        return False
    operands = [word.value for word in operands_of(words)]
    match name:
        case "branch" | "tag":
            listing = {"-l", "--list", "-a", "-r", "-v", "-vv", "--all", "--show-current"}
            return all(word.value in listing for word in words)
        case "remote":
            return not words or [word.value for word in words] == ["-v"]
        case "stash":
            return operands[:1] in (["list"], ["show"])
        case "reflog":
            return not words or operands[:1] == ["show"]
        case "worktree":
            return operands == ["list"]
        case "config":
            reading = {"--get", "--get-all", "--list", "-l", "get", "list"}
            return bool(words) and words[0].value in reading
        case _:
            return name in READS


def resets(given: tuple[Word, ...]) -> str:
    return "throws away changes that are not committed" if has(given, "", "hard", "merge") else ""


def cleans(given: tuple[Word, ...]) -> str:
    if has(given, "n", "dry-run") and not any(word.value is None for word in given):
        return ""
    return "deletes files that are not in git" if has(given, "fxX", "force") else ""


def checks_out(given: tuple[Word, ...]) -> str:
    """Going to a branch is safe. Fetching files over changed ones is not."""
    what = "throws away changes that are not committed"
    if has(given, "fB", "force", "ours", "theirs", "pathspec-from-file"):
        return what
    if any(word.value == "--" for word in given[:-1]):
        return what
    if has(given, "b", "orphan", "track"):
        return ""
    operands = operands_of(given)
    # A single word may be a branch or a file. One with a dot or a pattern is likely to be a file.
    if len(operands) > 1 or any(w.globs or "." in (w.value or ".") for w in operands):
        return what
    return ""


def switches(given: tuple[Word, ...]) -> str:
    forced = has(given, "fC", "force", "discard-changes", "force-create")
    return "throws away changes that are not committed" if forced else ""


def restores(given: tuple[Word, ...]) -> str:
    staged = has(given, "S", "staged") and not has(given, "W", "worktree")
    return "" if staged else "throws away changes that are not committed"


def pushes(given: tuple[Word, ...]) -> str:
    if has(given, "f", "force", "force-with-lease", "force-if-includes", "mirror", "prune"):
        return FORCED
    if has(given, "d", "delete"):
        return "deletes what others may use"
    for word in operands_of(given):
        if word.value is None:
            return "pushes something that is known only when it runs"
        if word.value.startswith("+"):
            return FORCED
        if word.value.startswith(":"):
            return "deletes what others may use"
    return ""


def branches(given: tuple[Word, ...]) -> str:
    if has(given, "DMC") or has(given, "f", "force"):
        return "deletes or moves a branch, merged or not"
    return ""


def stashes(given: tuple[Word, ...]) -> str:
    first = given[0].value if given else ""
    return "throws stashed changes away" if first in ("drop", "clear", None) else ""


def forced(given: tuple[Word, ...]) -> str:
    return "deletes changes that are not committed" if has(given, "f", "force") else ""


def tags(given: tuple[Word, ...]) -> str:
    return "deletes or moves a tag" if has(given, "df", "delete", "force") else ""


def references(given: tuple[Word, ...]) -> str:
    return "deletes or moves references" if has(given, "d", "delete", "stdin") else ""


def logs(given: tuple[Word, ...]) -> str:
    first = given[0].value if given else ""
    return "deletes what is left of old commits" if first in ("expire", "delete", None) else ""


def prunes(given: tuple[Word, ...]) -> str:
    return "deletes what is left of old commits" if has(given, "", "prune", "aggressive") else ""


def rewrites(_: tuple[Word, ...]) -> str:
    return "rewrites history"


def dropped(_: tuple[Word, ...]) -> str:
    return "deletes what is left of old commits"


CHECKS = {
    "reset": resets,
    "clean": cleans,
    "checkout": checks_out,
    "switch": switches,
    "restore": restores,
    "push": pushes,
    "branch": branches,
    "stash": stashes,
    "rm": forced,
    "worktree": forced,
    "tag": tags,
    "update-ref": references,
    "reflog": logs,
    "gc": prunes,
    "prune": dropped,
    "rebase": rewrites,
    "filter-branch": rewrites,
    "filter-repo": rewrites,
}
