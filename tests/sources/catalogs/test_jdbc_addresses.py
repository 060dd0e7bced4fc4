# SPDX-License-Identifier: Apache-2.0
"""Addresses of databases of JDBC catalogs: the forms that are read, and passwords that stay out of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.model.errors import BadRequest
from limnos.sources.catalogs.jdbc_addresses import parse_database


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ana:s3cret%21@db:5433/lake",
        "postgres://ana:s3cret%21@db:5433/lake",
        "postgresql+psycopg2://ana:s3cret%21@db:5433/lake",
        "jdbc:postgresql://db:5433/lake?user=ana&password=s3cret%21",
        "jdbc:postgresql://ana:s3cret%21@db:5433/lake",
    ],
)
def test_postgresql_address_has_one_meaning_in_each_form(text: str) -> None:
    """URLs of Java, SQLAlchemy and libpq give the same database; its label and repr have no user and no password."""
    database = parse_database(text)

    assert (database.url.username, database.url.password) == ("ana", "s3cret!")
    assert (database.url.host, database.url.port, database.url.database) == ("db", 5433, "lake")
    assert database.label == "postgresql://db:5433/lake"
    assert "s3cret" not in repr(database)


def test_password_beside_the_address_is_used_unless_the_address_has_one() -> None:
    """A password of the environment is for an address without one."""
    beside = parse_database("postgresql://ana@db/lake", password="beside").url
    inside = parse_database("postgresql://ana:inside@db/lake", password="beside").url

    assert (beside.password, inside.password) == ("beside", "inside")


def test_parameters_become_those_of_libpq() -> None:
    """TLS and the schema of a JDBC URL are kept; spaces of a schema are escaped."""
    arguments = parse_database("jdbc:postgresql://db/lake?ssl=true&currentSchema=my%20lake").arguments

    assert arguments == {"sslmode": "require", "options": "-c search_path=my\\ lake"}


@pytest.mark.parametrize(
    "text",
    [
        "mysql://root:s3cret@db/lake",
        "postgresql://ana:s3cret@db",
        "postgresql://ana:s3cret@db:port/lake",
        "postgresql://ana:s3cret@[db/lake",
        "postgresql://ana:s3cret@db/lake?socketFactory=x",
        "jdbc:postgresql:lake",
        "sqlite://host/s3cret",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:////no/such/file.db",
        "",
    ],
)
def test_other_address_is_refused_without_its_password(text: str) -> None:
    """An address of another form is refused; the message has no password, and SQLite creates no file."""
    with pytest.raises(BadRequest) as caught:
        parse_database(text)

    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize(
    "form", ["sqlite:///{}", "jdbc:sqlite:{}", "jdbc:sqlite:file:{}?cache=shared", "jdbc:sqlite:file://{}"]
)
def test_sqlite_address_names_an_existing_file(form: str, tmp_path: Path) -> None:
    """A file is opened under its own name, also with signs that mean something in a URL, and never created."""
    file = tmp_path / "a #1%.db"
    file.touch()

    database = parse_database(form.format(file))

    assert database.label == f"sqlite:///{file}"
    assert "mode" in database.url.query
