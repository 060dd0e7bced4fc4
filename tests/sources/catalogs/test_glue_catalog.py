# SPDX-License-Identifier: Apache-2.0
"""Glue's catalog, as moto serves it: entries and their kinds, updates that lose, closed entries, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest

from limnos.model.errors import BadRequest, CommitConflict, InvalidTable, NotFound, SourceFailed, SourceRefused
from limnos.sources.catalogs.glue_catalog import CLOSED, CLOSED_METADATA, GlueCatalog
from tests.glue import GlueServer, glue_server

pytestmark = pytest.mark.integration
TABLE = ("shop", "orders")


@pytest.fixture(scope="module")
def server() -> Iterator[GlueServer]:
    """Glue, as moto serves it."""
    with glue_server() as running:
        yield running


@pytest.fixture
def glue(server: GlueServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[GlueCatalog]:
    """A catalog with a database, an Iceberg table, one without a file, and one of Hive."""
    server.reset()
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    with closing(client(server)) as plain:
        plain.create_database(
            DatabaseInput={
                "Name": "shop",
                "Description": "of the shop",
                "LocationUri": "s3://b",
                "Parameters": {"k": "v"},
            }
        )
        for table, parameters in {
            "orders": {"table_type": "ICEBERG", "metadata_location": "m1", "kept": "yes"},
            "broken": {"table_type": "iceberg"},
            "logs": {"classification": "csv"},
        }.items():
            entry = {"Name": table, "TableType": "EXTERNAL_TABLE", "Parameters": parameters}
            plain.create_table(DatabaseName="shop", TableInput=entry)
    with closing(GlueCatalog(server.uri, account=None, timeout_s=20.0)) as catalog:
        yield catalog


def client(server: GlueServer) -> Any:  # noqa: ANN401 - a client without types
    """Return AWS's client."""
    return boto3.client("glue", endpoint_url=server.uri)


def parameters_of(server: GlueServer) -> dict[str, str]:
    """Return the parameters of the table."""
    with closing(client(server)) as plain:
        result: dict[str, str] = plain.get_table(DatabaseName="shop", Name="orders")["Table"]["Parameters"]
    return result


def test_databases_and_tables_are_listed_with_their_kinds(glue: GlueCatalog) -> None:
    """A database has its parameters, location and description; a table without Iceberg metadata is `other`."""
    assert glue.namespaces() == [("shop",)]
    assert glue.namespace_properties(("shop",)) == {"k": "v", "location": "s3://b", "comment": "of the shop"}
    assert glue.names(("shop",)) == [("broken", "table"), ("logs", "other"), ("orders", "table")]
    assert glue.entry(TABLE).metadata_location == "m1"
    assert "without Iceberg metadata (EXTERNAL_TABLE)" in glue.entry(("shop", "logs")).note
    with pytest.raises(InvalidTable):
        glue.entry(("shop", "broken"))
    with pytest.raises(NotFound):
        glue.entry(("shop", "none"))


def test_commit_needs_the_expected_file_and_keeps_parameters(glue: GlueCatalog, server: GlueServer) -> None:
    """A commit on the entry's file succeeds, one on a former file does not; other parameters stay."""
    glue.replace(TABLE, "m2", expected="m1", properties={"limnos.moved-to": "here"})

    with pytest.raises(CommitConflict):
        glue.replace(TABLE, "m3", expected="m1", properties={})
    assert parameters_of(server) == {
        "table_type": "ICEBERG",
        "metadata_location": "m2",
        "previous_metadata_location": "m1",
        "kept": "yes",
        "limnos.moved-to": "here",
    }


def test_commit_between_read_and_update_makes_the_update_fail(
    glue: GlueCatalog, server: GlueServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Glue refuses an update of a version that is no longer the last; closing an entry then reads it again."""
    plain, table = glue._table, glue._table(TABLE)
    glue.replace(TABLE, "m2", expected="m1", properties={})
    answers = iter((table, table))
    monkeypatch.setattr(glue, "_table", lambda path: next(answers, None) or plain(path))

    with pytest.raises(CommitConflict):
        glue.replace(TABLE, "m3", expected="m1", properties={})
    glue.retire(TABLE, name="ignored")

    assert parameters_of(server)[CLOSED_METADATA] == "m2"


def test_closed_entry_is_no_table_for_other_clients(glue: GlueCatalog, server: GlueServer) -> None:
    """An entry that was closed has no metadata file for clients, but is still read here; closing again is a no-op."""
    assert glue.retire(TABLE, name="ignored") == "orders"
    glue.retire(TABLE, name="ignored")

    parameters, entry = parameters_of(server), glue.entry(TABLE)
    assert "metadata_location" not in parameters
    assert (parameters["table_type"], parameters[CLOSED_METADATA]) == (CLOSED, "m1")
    assert (entry.kind, entry.metadata_location, entry.is_closed) == ("table", "m1", True)
    with pytest.raises(CommitConflict):
        glue.replace(TABLE, "m2", expected="m1", properties={})


def test_repeated_page_token_ends_the_list(glue: GlueCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that names the same next page for ever, and entries that are none, does not keep the command."""
    answer = {"DatabaseList": [{"Name": "a"}, 7, {}], "NextToken": "again"}
    monkeypatch.setattr(glue._client, "get_databases", lambda **_: answer)

    assert glue.namespaces() == [("a",), ("a",)]


@pytest.mark.parametrize("uri", ["ftp://x", "eu", "https://key:s3cret@glue", ""])
def test_other_address_is_refused_without_its_secret(uri: str) -> None:
    """An address that is neither a region nor a URL is refused, and its password not repeated."""
    with pytest.raises(BadRequest) as caught:
        GlueCatalog(uri, account=None, timeout_s=1.0)

    assert "s3cret" not in caught.value.message


def test_address_without_a_server_does_not_answer(glue: GlueCatalog) -> None:
    """A refused connection is a failure that may pass."""
    dead = GlueCatalog("http://127.0.0.1:1", account="123456789012", timeout_s=1.0)
    with closing(dead), pytest.raises(SourceFailed) as caught:
        dead.namespaces()

    assert not isinstance(caught.value, SourceRefused)


def test_environment_without_credentials_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without keys the command says that AWS's environment has none."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    lost = GlueCatalog("us-east-1", account=None, timeout_s=1.0)
    with closing(lost), pytest.raises(SourceRefused, match="AWS's environment has none"):
        lost.namespaces()
