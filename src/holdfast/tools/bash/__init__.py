"""The shell's language, as far as it must be understood before a command runs.

`words` and `syntax` have the shape, `doubts` where that is not certain, `wrappers` what is inside,
`dangers` and `git` what destroys, `plain` and `reading` what only reads, `targets` which files are
written, `powers` which options do more. `holdfast.tools.commands` puts them together.
"""
