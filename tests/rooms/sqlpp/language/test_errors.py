# SPDX-License-Identifier: Apache-2.0
"""Errors that are pickled between processes."""

from __future__ import annotations

import pickle

import pytest

from limnos.rooms.sqlpp.language.errors import DuplicateKey


@pytest.mark.parametrize("is_load, code, verb", [(False, "HYR0033", "Inserting"), (True, "HYR0032", "Loading")])
def test_duplicate_key_code_differs_between_load_and_insert(is_load: bool, code: str, verb: str) -> None:
    """LOAD has another code than INSERT, also after the error was pickled."""
    error = pickle.loads(pickle.dumps(DuplicateKey('{"id": 1}', is_load=is_load)))

    assert (error.code, error.key) == (code, '{"id": 1}')
    assert error.text == f'{code}: {verb} duplicate keys into the primary storage: {{"id": 1}}'
