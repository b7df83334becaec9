"""What a task of a role asks of a node: a module each, whose `main` takes the task's options."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - a node's; typing.NotRequired
    sys.exit(f"Python {sys.version.split()[0]} at {sys.executable} is too old")
