# SPDX-License-Identifier: Apache-2.0
"""Every error has its own answer in every protocol: none is answered as an unexpected error."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from limnos.http.response import Response
from limnos.model import errors
from limnos.model.errors import LimnosError, StorageFailed, StoreDamaged
from scripts.generate_openapi import documented_protocols

OPERATIONS = {"iceberg": "load-table", "lance": "describe-table", "asterix": "query-service"}
"""An operation of each protocol whose errors depend on it."""
UNEXPECTED = (LimnosError, errors.StateUnknown, errors.StoreDamaged, errors.CannotStart, errors.StartWarning)
"""Errors that are deliberately answered with 500, and errors that no request causes."""


def kinds() -> Iterator[type[LimnosError]]:
    """Return every error class that a caller can get."""
    for value in vars(errors).values():
        is_error = isinstance(value, type) and issubclass(value, LimnosError) and "code" in vars(value)
        if is_error and value not in UNEXPECTED:
            yield value


def answers(error: LimnosError) -> dict[str, Response]:
    """Return the answer of each protocol that is installed."""
    return {
        protocol.name: protocol.error(error, request_id="r", operation=OPERATIONS.get(protocol.name, ""))
        for protocol in documented_protocols()
    }


def make_error(kind: type[LimnosError]) -> LimnosError:
    """Return an error of a class; some need arguments."""
    about = {"kind": "catalog"} if "kind" in kind.__init__.__annotations__ else {}
    return kind("no", **about)


@pytest.mark.parametrize("kind", [*kinds()], ids=lambda kind: kind.code)
def test_no_error_class_is_answered_with_500(kind: type[LimnosError]) -> None:
    """Each error class is in each protocol's table, and none is answered as an internal error."""
    statuses = {protocol: answer.status for protocol, answer in answers(make_error(kind)).items()}

    assert 500 not in statuses.values(), statuses


def test_damage_is_reported_in_each_protocol() -> None:
    """Damage is 500, because no retry helps, and its message says what to do."""
    responses = answers(StoreDamaged("The table is damaged: run 'limnos server check'"))

    assert {answer.status for answer in responses.values()} == {500}
    assert [name for name, answer in responses.items() if b"limnos server check" not in answer.body] == []
    assert json.loads(responses["admin"].body)["error"]["code"] == "store-damaged"


def test_storage_failure_is_not_reported_as_internal_error() -> None:
    """In each protocol, a failing file store is reported as such and not as an internal error."""
    responses = answers(StorageFailed("The bucket refuses: check its credentials"))

    expected = {"gravitino": 502, "iceberg": 503, "lance": 503, "asterix": 503, "admin": 502}
    assert {protocol: answer.status for protocol, answer in responses.items()} == {
        protocol: status for protocol, status in expected.items() if protocol in responses
    }
    assert {"iceberg", "admin"} <= responses.keys()
    if "gravitino" in responses:
        assert json.loads(responses["gravitino"].body)["type"] == "ConnectionFailedException"
    assert json.loads(responses["admin"].body)["error"]["code"] == "storage-failed"
