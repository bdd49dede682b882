"""`python -m holdfast` is `holdfast`."""

from holdfast.apps.cli import main

raise SystemExit(main())
