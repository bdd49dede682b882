"""Commands that only read, as far as their words tell. When in doubt, they do not.

A command may be on the list with all of its options but those named here; `sed`, `find`, `git` and a
few others have a rule of their own. Programs that run programs (`awk`, `less`, `xargs`) are left out.
"""

import re

from holdfast.tools.bash import git
from holdfast.tools.bash.options import has, operands_of
from holdfast.tools.bash.syntax import Word

ANY = {
    "[", "basename", "cat", "cksum", "cmp", "comm", "cut", "df", "dirname", "du", "echo", "egrep",
    "expand", "false", "fgrep", "fold", "free", "grep", "groups", "head", "hexdump", "id", "jq",
    "join", "logname", "ls", "md5sum", "nl", "nproc", "od", "paste", "printenv", "ps", "pwd",
    "readlink", "realpath", "rev", "seq", "sha1sum", "sha256sum", "sha512sum", "stat", "strings",
    "sum", "tac", "tail", "test", "tr", "true", "type", "uname", "unexpand", "uptime", "wc", "where",
    "which", "whoami", ":", "cd", "diff", "exit", "wait", "column", "lsblk", "arch", "tty",
    "break", "continue", "unset",
}  # fmt: skip
WRITING: dict[str, tuple[str, tuple[str, ...]]] = {
    "sort": ("oT", ("output", "compress-program", "temporary-directory")),
    "tree": ("oR", ()),
    "file": ("C", ("compile",)),
    "date": ("s", ("set",)),
    "rg": ("z", ("pre", "hostname-bin", "search-zip")),
    "fd": ("xX", ("exec", "exec-batch")),
    "fdfind": ("xX", ("exec", "exec-batch")),
    "printf": ("v", ()),
}
"""Options that write or start a program: letters, long names."""
FINDS = ("-delete", "-exec", "-ok", "-fprint", "-fls", "-files0")
SHOWS_LINES = re.compile(
    r"(\d+|\$|/[^/\\;]*/)(,(\d+|\$|/[^/\\;]*/))?p(;(\d+|\$)(,(\d+|\$))?p)*|\d+q"
)
TELLS_VERSION = {"python", "python3", "node", "npm", "pip", "cargo", "rustc", "go", "make", "gcc",
                 "uv", "ruff", "java", "bash", "docker"}  # fmt: skip


def only_reads(name: str, words: tuple[Word, ...]) -> bool:
    """Whether this command surely changes nothing. One with a word that only the shell can know
    is never sure, nor is a program that is not found by its name alone."""
    if words[0].value != name or any(word.value is None for word in words):
        return False
    given = words[1:]
    match name:
        case "git":
            return git.only_reads(given)
        case "sed":
            return shows_lines(given)
        case "find":
            return not any((word.value or "").startswith(FINDS) for word in given)
        case "uniq" | "hostname":
            return len(operands_of(given)) <= (1 if name == "uniq" else 0) and not has(given, "bF")
        case "date":
            operands = [word.value or "" for word in operands_of(given)]
            return all(word.startswith("+") for word in operands) and not has(given, "s", "set")
        case "env":
            return not given
        case "command":
            return bool(given) and given[0].value in ("-v", "-V")
        case "python" | "python3" if [word.value for word in given] == ["-V"]:
            return True
    if name in WRITING:
        letters, options = WRITING[name]
        return not has(given, letters, *options)
    if name in TELLS_VERSION:
        return [word.value for word in given] == ["--version"]
    return name in ANY


def shows_lines(given: tuple[Word, ...]) -> bool:
    """`sed -n '1,20p' file`: other programs of sed may write files or run commands."""
    if not given or given[0].value != "-n" or len(given) < 2:
        return False
    options = [word.value or "" for word in given[1:] if (word.value or "").startswith("-")]
    return not options and SHOWS_LINES.fullmatch(given[1].value or "") is not None
