# SPDX-License-Identifier: Apache-2.0
"""The tree of commands, for the parser: each module is imported only when its command is called.

Must not know what a command does.
"""

from __future__ import annotations

from cyclopts import App

from limnos.cli.operations import COMMANDS

EPILOGUE = "Paths are written catalog.namespace.table, back-quotes where needed. Lists take --columns a,b and --wide."


def build(command: str | None = None) -> App:
    """Build the command tree. Modules are imported only when their command is used.

    The module of `command` is imported, so that the help text is its own docstring instead of the line in `COMMANDS`.
    """
    app = App(
        name="limnos",
        help="A metadata lake: one governed tree of names for lakehouse data.",
        help_epilogue=EPILOGUE,
        version_flags=(),
        help_format="plaintext",
        sort_key=None,
    )
    for order, (name, entry) in enumerate(COMMANDS.items()):
        is_called = name == command and not entry.module.endswith(":app")
        app.command(entry.module, name=name, help=None if is_called else entry.summary, sort_key=order)
    return app


app = build()
"""The whole command tree, for tests and documentation."""
