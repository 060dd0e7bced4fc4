"""The room's exception."""

from __future__ import annotations

import pickle

from limnos.names import InvalidName


def test_text_is_the_message_and_reason_is_a_word() -> None:
    """An InvalidName reads as its message, is a ValueError, and keeps the machine word apart."""
    error = InvalidName("empty-part", "A part is empty.")

    assert isinstance(error, ValueError)
    assert (str(error), error.message, error.reason) == ("A part is empty.", "A part is empty.", "empty-part")


def test_survives_pickling() -> None:
    """An InvalidName raised in a Spark worker arrives at the driver whole."""
    error = InvalidName("ambiguous", "Two fit.")

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), copy.reason, copy.message) == (InvalidName, "ambiguous", "Two fit.")
