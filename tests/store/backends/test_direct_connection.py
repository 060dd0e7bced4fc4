# SPDX-License-Identifier: Apache-2.0
"""Direct connections: a block is one transaction on both databases, and an error undoes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.store.backends.direct_connection import direct_connection, postgres_settings
from limnos.store.backends.migrate import migrate
from limnos.store.sql import Sql

_ADD = Sql("INSERT INTO owner (object_id, principal_id) VALUES (:object_id, :principal_id) RETURNING object_id")
_COUNT = Sql("SELECT count(*) FROM owner WHERE principal_id = :principal_id")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a migrated store."""
    is_file = request.param == "sqlite"
    result = str(tmp_path / "limnos.db" if is_file else request.getfixturevalue("postgres_server").empty_database())
    migrate(result)
    return result


def count_of(address: str) -> object:
    """Return the number of stored owners of principal 8."""
    with direct_connection(address) as connection:
        return connection.value(_COUNT, principal_id=8)


def insert_and_fail(address: str, *, in_transaction: bool) -> None:
    """Insert an owner, and raise an error within the block."""
    with direct_connection(address, in_transaction=in_transaction) as connection:
        connection.rows(_ADD, {"object_id": 7, "principal_id": 8})
        raise ZeroDivisionError


def test_statements_of_a_block_are_stored_together(address: str) -> None:
    """Statements return their rows, and a block that ends stores all of them."""
    with direct_connection(address) as connection:
        assert connection.rows(_ADD, {"object_id": 7, "principal_id": 8}) == [(7,)]
        assert connection.rows(_ADD, {"object_id": 9, "principal_id": 8}) == [(9,)]

    assert count_of(address) == 2


def test_block_that_fails_stores_nothing(address: str) -> None:
    """An error in a block undoes its statements."""
    with pytest.raises(ZeroDivisionError):
        insert_and_fail(address, in_transaction=True)

    assert count_of(address) == 0


def test_block_without_transaction_stores_each_statement(address: str) -> None:
    """Without a transaction, each statement is stored at once."""
    with pytest.raises(ZeroDivisionError):
        insert_and_fail(address, in_transaction=False)

    assert count_of(address) == 1


def test_value_of_no_row_is_none(address: str) -> None:
    """A statement without rows has no value."""
    with direct_connection(address) as connection:
        assert connection.value(Sql("SELECT object_id FROM owner WHERE object_id = 1")) is None


def test_settings_of_the_url_go_before_defaults() -> None:
    """A URL may set its own name of the application and time to connect."""
    settings = postgres_settings("postgresql://localhost/lake?application_name=mine&connect_timeout=7", connect_s=5)

    assert (settings["application_name"], settings["connect_timeout"]) == ("mine", "7")
    assert postgres_settings("postgresql://localhost/lake", connect_s=5)["connect_timeout"] == 5
