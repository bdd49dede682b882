"""An agent loop that holds.

Today this package is its heart, `holdfast.core`, and what it takes to try it,
`holdfast.testing`. Importing it costs nothing and touches nothing.
"""

__version__ = "0.1.0.dev0"
