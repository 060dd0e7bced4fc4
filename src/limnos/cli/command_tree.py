# SPDX-License-Identifier: Apache-2.0
"""The tree of commands, for the parser: each module is imported only when its command is called.

Must not know what a command does. The help page of a command is the parser's; its texts are filled here, because the
parser keeps the line breaks of docstrings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cyclopts import App

from limnos.cli.operations import COMMANDS

if TYPE_CHECKING:
    from cyclopts.help.protocols import HelpFormatter

EPILOGUE = "Paths are written catalog.namespace.table, back-quotes where needed. Lists take --columns a,b and --wide."


class FilledHelp:
    """The parser's formatter of help pages, for texts without line breaks inside of paragraphs.

    The parser calls it by position: console, options, and a panel or a text. Its formatter and `rich` are imported when
    a page is printed, because most commands print none.
    """

    def __call__(self, *arguments: Any) -> None:  # noqa: ANN401 - the parser's types, which are not imported
        """Print a panel of arguments or commands."""
        from cyclopts.help.formatters import DefaultFormatter

        for entry in arguments[-1].entries:
            _fill(entry.description)
        DefaultFormatter()(*arguments)

    def render_usage(self, *arguments: Any) -> None:  # noqa: ANN401
        """Print the line of usage."""
        from cyclopts.help.formatters import DefaultFormatter

        DefaultFormatter().render_usage(*arguments)

    def render_description(self, *arguments: Any) -> None:  # noqa: ANN401
        """Print the text above the panels."""
        from cyclopts.help.formatters import DefaultFormatter

        _fill(arguments[-1])
        DefaultFormatter().render_description(*arguments)


def _fill(description: Any) -> None:  # noqa: ANN401
    from rich.text import Text

    text = getattr(description, "primary_renderable", None)
    if isinstance(text, Text):
        description.primary_renderable = Text(join_lines(text.plain), end=text.end)


def join_lines(text: str) -> str:
    """Return a text with each paragraph in one line. Paragraphs with indented lines or list items are not changed."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.split("\n")
        is_prose = not any(line.startswith((" ", "-", "$")) for line in lines)
        paragraphs.append(" ".join(line.strip() for line in lines) if is_prose else paragraph)
    return "\n\n".join(paragraphs)


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
        help_formatter=cast("HelpFormatter", FilledHelp()),
        sort_key=None,
    )
    for order, (name, entry) in enumerate(COMMANDS.items()):
        is_called = name == command and not entry.module.endswith(":app")
        app.command(entry.module, name=name, help=None if is_called else entry.summary, sort_key=order)
    return app


app = build()
"""The whole command tree, for tests and documentation."""
