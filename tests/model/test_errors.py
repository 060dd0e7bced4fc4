# SPDX-License-Identifier: Apache-2.0
"""Errors of the taxonomy: each can be copied, pickled and given another message."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from copy import copy, deepcopy

import pytest

from limnos.model.errors import LimnosError


def _taxonomy(root: type[LimnosError] = LimnosError) -> Iterator[type[LimnosError]]:
    yield root
    for each in root.__subclasses__():
        yield from _taxonomy(each)


CLASSES = [each for each in _taxonomy() if each.__module__ == "limnos.model.errors"]
VALUES: dict[str, object] = {
    "kind": "table",
    "decision": ("a decision",),
    "was_right": True,
    "principal": "ana",
    "metalake_id": 7,
    "retry_after_s": 7,
    "why": "because",
    "advice": "do this",
    "holder_id": 8,
    "metalake": "lake",
}
"""A value of each field that a constructor names; a new field is added here."""


def _error(cls: type[LimnosError]) -> LimnosError:
    """Return an error with every field set, and with a context if the class has one."""
    parameters = inspect.signature(cls).parameters.values()
    named = {each.name: VALUES[each.name] for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
    takes_context = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    return cls("What is wrong", **named, **({"operation": 3} if takes_context else {}))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_another_message_keeps_class_and_fields(cls: type[LimnosError]) -> None:
    """A copy with another message has the same class and all other fields; the original is unchanged."""
    error = _error(cls)
    fields = dict(vars(error))

    changed = error.with_message("Other words")

    assert type(changed) is cls
    assert (str(changed), changed.message, changed.args) == ("Other words", "Other words", ("Other words",))
    assert {**vars(changed), "message": error.message} == fields
    assert (str(error), vars(error)) == ("What is wrong", fields)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_copies_keep_class_message_and_fields(cls: type[LimnosError]) -> None:
    """A copied, deep-copied or pickled error keeps its class, its message and every field."""
    error = _error(cls)

    copies = [copy(error), deepcopy(error), pickle.loads(pickle.dumps(error))]

    for each in copies:
        assert (type(each), str(each), each.args, vars(each)) == (cls, str(error), error.args, vars(error))


def test_the_context_of_a_copy_is_its_own() -> None:
    """A change of the context of a copy does not change the original's."""
    error = LimnosError("What is wrong", operation=3)

    error.with_message("Other words").context["subject"] = "a table"

    assert error.context == {"operation": 3}
