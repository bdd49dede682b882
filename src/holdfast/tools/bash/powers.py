"""Options with which well-known programs write files or run other programs.

A rule such as `run_shell(git diff *)` means looking at differences. Its wildcard must not stand for
`--output=file`, so what is listed here must be in the rule itself.
"""

import shlex
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class More:
    letters: str = ""
    names: tuple[str, ...] = ()
    """Long options, which may be cut short."""
    words: tuple[str, ...] = ()
    """The beginnings of words that are options though they have one dash, or none."""


MORE = {
    "git": More(
        "cCO",
        ("output", "ext-diff", "textconv", "open-files-in-pager", "exec", "upload-pack",
         "receive-pack", "config", "config-env", "exec-path", "git-dir", "work-tree", "filters",
         "no-index", "template", "separate-git-dir", "extcmd", "tool", "paginate", "web",
         "namespace", "super-prefix", "attr-source", "shallow-file"),
        ("ext::",),
    ),
    "find": More(words=("-exec", "-ok", "-delete", "-fprint", "-fls", "-files0")),
    "sort": More("oT", ("output", "compress-program", "temporary-directory", "files0-from")),
    "rg": More("z", ("pre", "hostname-bin", "search-zip")),
    "fd": More("xXl", ("exec", "exec-batch", "list-details")),
    "sed": More("if", ("in-place", "file")),
    "tar": More("IF", ("to-command", "checkpoint-action", "use-compress-program", "remove-files",
                       "rsh-command", "info-script", "new-volume-script")),
    "curl": More("oOKTJ", ("output", "output-dir", "remote-name", "config", "upload-file", "engine")),
    "wget": More("OPeio", ("output-document", "directory-prefix", "execute", "output-file",
                           "post-file", "use-askpass", "config")),
    "rsync": More("e", ("rsh", "rsync-path", "delete", "remove-source-files")),
    "ssh": More("oFDLRWw"),
    "scp": More("oFS"),
    "npm": More("C", ("script-shell", "prefix", "node-options", "globalconfig", "userconfig")),
    "pnpm": More("C", ("script-shell", "dir", "node-options")),
    "yarn": More("", ("cwd", "script-shell", "use-yarnrc")),
    "make": More("fCIE", ("eval", "file", "makefile", "directory", "include-dir"),
                 ("SHELL=", "MAKEFLAGS=", ".SHELLFLAGS=", "MAKEFILES=")),
    "cargo": More("Z", ("config", "manifest-path", "target-dir")),
    "go": More(words=("-toolexec", "-exec", "-vettool", "-o", "-modfile", "-C", "-overlay", "-c")),
    "pytest": More("pco", ("basetemp", "rootdir", "junit-xml", "junitxml", "log-file", "confcutdir",
                           "debug", "pastebin", "config-file", "override-ini")),
    "ruff": More("o", ("output-file", "config", "cache-dir")),
    "mypy": More("", ("python-executable", "config-file", "install-types", "junit-xml", "cache-dir",
                      "html-report", "txt-report", "xml-report", "any-exprs-report")),
    "pip": More("t", ("target", "prefix", "root", "index-url", "extra-index-url", "python")),
    "file": More("Cmf", ("compile", "magic-file", "files-from")),
    "tree": More("oR"),
    "date": More("s", ("set",)),
}  # fmt: skip


def more_than_asked(command: str) -> tuple[str, ...]:
    """The words of one command with which its program would write, or run something else."""
    try:
        program, *given = shlex.split(command)
    except ValueError:
        return (command,)  # nobody can say
    more = MORE.get(program.rpartition("/")[2])
    if more is None:
        return ()
    return tuple(word for word in given if is_more(word, more))


def is_more(word: str, more: More) -> bool:
    if word.startswith(more.words):
        return True
    if word.startswith("--"):
        option = word[2:].partition("=")[0]
        return bool(option) and any(name.startswith(option) for name in more.names)
    # Where letters may be joined, one of them anywhere is enough; `-C5` is not worth the doubt.
    return word.startswith("-") and bool(set(more.letters) & set(word[1:]))
