"""Operation errors: adds the object to the error of one operation among several.

May import `model` and `names`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.model.kinds import Kind
from limnos.names.display import render

if TYPE_CHECKING:
    from limnos.model.errors import LimnosError
    from limnos.names.parts import Levels


def name_object_in_error(error: LimnosError, path: Levels, *, what: Kind = Kind.TABLE) -> LimnosError:
    """Return the error with the object's kind and path in its message.

    A failed requirement is also named by its type.
    """
    words, requirement = error.message, error.context.get("requirement")
    failed = "Requirement failed: "
    if words.startswith(failed):
        kind = f" ({requirement})" if requirement else ""
        words = f"{failed}{what.word} {render(path)}: {words.removeprefix(failed)}{kind}"
    else:
        words = f"{what.word.capitalize()} {render(path)}: {words}"
    return error.with_message(words)
