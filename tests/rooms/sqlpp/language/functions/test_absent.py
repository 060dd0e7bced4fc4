# SPDX-License-Identifier: Apache-2.0
"""The names of AsterixDB's functions, compared with the implemented ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.functions import FUNCTIONS
from limnos.rooms.sqlpp.language.functions.absent import ABSENT, absent_function_subject
from tests.rooms.sqlpp.language.evaluation import value

NAMES = frozenset((Path(__file__).parent / "asterixdb.txt").read_text(encoding="utf-8").split())
MOMENT = frozenset({"current_date", "current_time", "current_datetime"})
"""Functions of the binder: a statement's time."""


def test_every_asterixdb_function_is_implemented_or_listed() -> None:
    """Each function of AsterixDB is either implemented or listed as absent, except functions that only its compiler
    calls.
    """
    absent = frozenset().union(*ABSENT.values())

    assert NAMES - FUNCTIONS.keys() - absent == MOMENT
    assert absent & FUNCTIONS.keys() == set()
    assert absent <= NAMES


def test_absent_function_error_has_message_and_reason() -> None:
    """The error for an absent function has AsterixDB's message and the reason, for every spelling. Other unknown names
    have no reason.
    """
    with pytest.raises(
        SqlppError,
        match=r"signature `ST-Transform`\(1 argument\): functions about coordinate reference systems are not supported",
    ):
        value("`ST-Transform`(1)")
    with pytest.raises(SqlppError, match=r"signature nonsense\(1 argument\) \(in line") as error:
        value("nonsense(1)")
    assert error.value.number == 1081
    assert absent_function_subject("nonsense") is None
