# SPDX-License-Identifier: Apache-2.0
"""Tables whose metadata names foreign files, over the server's own engine: no statement returns a foreign row."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from tests.integration.live import LiveServer, serving
from tests.rooms.sqlpp.engine.test_service import ask, rows

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

SECRET = "4111-SECRET"
ROWS = pa.table({"id": pa.array(range(3), pa.int64()), "card": [SECRET] * 3})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with a table of secrets."""
    with serving(tmp_path_factory.mktemp("foreign") / "data") as running:
        catalog = catalog_of(running)
        catalog.create_namespace("lab")
        catalog.create_table("lab.secret", schema=ROWS.schema).append(ROWS)
        yield running


def catalog_of(server: LiveServer) -> Catalog:
    """Return the server's catalog in PyIceberg."""
    return load_catalog("lake", uri=f"{server.uri}/iceberg", token=server.token, warehouse="lake/main")


def send(server: LiveServer, path: str, body: object) -> tuple[int, str]:
    """POST to Iceberg REST. Returns the status and the body."""
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    target = f"{server.uri}/iceberg/v1/lake.main/namespaces/lab/tables{path}"
    try:
        with urllib.request.urlopen(urllib.request.Request(target, json.dumps(body).encode(), headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def refused(server: LiveServer, statement: str) -> str:
    """Return the message of a refusal, which has no row and no file in it."""
    status, answer = ask(server, statement)
    assert (status, answer.get("results")) == (400, None), answer
    message = str(answer["errors"])
    assert SECRET not in message
    assert ".parquet" not in message
    return message


def test_a_table_over_the_files_of_another_gives_no_rows(server: LiveServer) -> None:
    """A snapshot cannot name the manifest list of another table; a table whose manifests name its data files is not
    opened, neither to read nor to write. The owner's statements work.
    """
    catalog = catalog_of(server)
    secret = catalog.load_table("lab.secret")
    snapshot = secret.current_snapshot()
    assert snapshot is not None
    catalog.create_table("lab.listed", schema=ROWS.schema)
    added: dict[str, Any] = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": snapshot.timestamp_ms,
        "schema-id": 0,
        "manifest-list": snapshot.manifest_list,
        "summary": {"operation": "append"},
    }
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7}
    status, body = send(
        server, "/listed", {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": added}, main]}
    )
    named = catalog.create_table("lab.named", schema=ROWS.schema)
    named.append(ROWS.slice(0, 0))
    named.add_files(
        [str(file) for file in secret.inspect.files()["file_path"].to_pylist()], check_duplicate_files=False
    )

    assert (status, "is not below a location of the table" in body) == (400, True)
    assert rows(server, "select value s.card from lab.secret s limit 1") == [SECRET]
    assert rows(server, "select value s from lab.listed s") == []
    messages = {
        refused(server, text)
        for text in (
            "select value s from lab.named s",
            "select value count(*) from lab.named s",
            "insert into lab.named ({'id': 9})",
        )
    }
    assert len(messages) == 1
    assert "lab.named" in messages.pop()
    rows(server, "insert into lab.listed ({'id': 1, 'card': 'mine'})")
    assert rows(server, "select value s.card from lab.listed s") == ["mine"]


def test_a_table_gets_no_class_for_the_engine(server: LiveServer) -> None:
    """A table cannot be created with a property that would make the engine construct a class."""
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    body = {"name": "timer", "schema": schema, "properties": {"write.location-provider.impl": "java.util.Timer"}}

    status, message = send(server, "", body)

    assert (status, "names a class" in message) == (400, True)


def test_a_manifest_list_that_is_replaced_after_a_read_gives_no_rows(server: LiveServer) -> None:
    """The owner of a table puts the content of another table's manifest list under the name of its own: statements
    that read or change the table are refused. With its own content again, they give its own rows.
    """
    catalog = catalog_of(server)
    secret = catalog.load_table("lab.secret").current_snapshot()
    catalog.create_table("lab.swapped", schema=ROWS.schema).append(ROWS.set_column(1, "card", pa.array(["own"] * 3)))
    own = catalog.load_table("lab.swapped").current_snapshot()
    assert own is not None
    assert secret is not None
    assert rows(server, "select value t.card from lab.swapped as t") == ["own"] * 3
    at = Path(own.manifest_list.removeprefix("file://"))
    content = at.read_bytes()
    at.write_bytes(Path(secret.manifest_list.removeprefix("file://")).read_bytes())

    for statement in ("select value t from lab.swapped as t", "insert into lab.swapped ({'id': 9, 'card': 'x'})"):
        refused(server, statement)
    at.write_bytes(content)
    assert rows(server, "select value t.card from lab.swapped as t") == ["own"] * 3
