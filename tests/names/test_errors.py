# SPDX-License-Identifier: Apache-2.0
"""The exception of this package."""

from __future__ import annotations

import pickle

from limnos.names import InvalidName


def test_invalid_name_has_message_and_reason() -> None:
    """The text of an InvalidName is its message. It is a ValueError and has the reason as a separate word."""
    error = InvalidName("empty-part", "A part is empty.")

    assert isinstance(error, ValueError)
    assert (str(error), error.message, error.reason) == ("A part is empty.", "A part is empty.", "empty-part")


def test_invalid_name_survives_pickling() -> None:
    """An InvalidName is unpickled with all of its fields, as when a Spark worker sends it to the driver."""
    error = InvalidName("ambiguous", "Two fit.")

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), copy.reason, copy.message) == (InvalidName, "ambiguous", "Two fit.")
