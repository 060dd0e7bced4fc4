# SPDX-License-Identifier: Apache-2.0
"""Object errors: errors that name an object by its kind and path."""

from __future__ import annotations

from limnos.model.errors import AlreadyExists, LimnosError
from limnos.model.kinds import Kind
from limnos.names.display import render
from limnos.names.parts import Levels


def name_object_in_error(error: LimnosError, path: Levels, *, what: Kind = Kind.TABLE) -> LimnosError:
    """Return a copy of the error with the object's kind and path in its message.

    For a failed requirement of a commit, the message also has the requirement's type.
    """
    words, requirement = error.message, error.context.get("requirement")
    failed = "Requirement failed: "
    if words.startswith(failed):
        kind = f" ({requirement})" if requirement else ""
        words = f"{failed}{what.word} {render(path)}: {words.removeprefix(failed)}{kind}"
    else:
        words = f"{what.word.capitalize()} {render(path)}: {words}"
    return error.with_message(words)


def name_taken_error(path: Levels, *, kind: Kind, holder: str) -> AlreadyExists:
    """Return the error for a taken name of a new table or view; tables and views of a namespace share one name space.

    `holder` is the existing object's kind.
    """
    same = "" if holder == kind.word else " with same name"
    return AlreadyExists(f"{holder.capitalize()}{same} already exists: {render(path)}", kind=holder)


def name_conflict(source: Levels, target: Levels, *, holder: Kind) -> AlreadyExists:
    """Return the error for the rename of a table or view to a taken name. `holder` is the existing object's kind."""
    text = f"Cannot rename {render(source)} to {render(target)}. {holder.word.capitalize()} already exists"
    return AlreadyExists(text, kind=holder.word)
