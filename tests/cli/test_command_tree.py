# SPDX-License-Identifier: Apache-2.0
"""The tree of commands: help texts are filled to the width of the terminal."""

from __future__ import annotations

from limnos.cli.command_tree import join_lines


def test_lines_of_a_paragraph_are_joined() -> None:
    """Lines of one paragraph become one line, which the terminal wraps; paragraphs stay apart."""
    assert (
        join_lines("Restrict rows\nand columns.\n\nIt applies\nto all.")
        == "Restrict rows and columns.\n\nIt applies to all."
    )


def test_examples_keep_their_lines() -> None:
    """A paragraph with indented lines, list items or commands stays as it is."""
    text = "For example:\n\n    limnos list\n    limnos tree\n\n- one\n- two"

    assert join_lines(text) == text
