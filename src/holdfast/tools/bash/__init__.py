"""The shell's language, as far as it must be understood before a command runs.

`syntax` has the shape, `wrappers` what is inside, `dangers` and `git` what destroys, `reading` what only
reads, `targets` which files are written. `holdfast.tools.commands` puts them together.
"""
