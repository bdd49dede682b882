"""Where it runs: the driver, its tasks, and those who watch. The only code that owns tasks."""
