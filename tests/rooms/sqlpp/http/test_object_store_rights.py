# SPDX-License-Identifier: Apache-2.0
"""Statements that write to datasets in an object store: the engine needs credentials of the caller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from limnos.config.storage import StorageSection
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from tests.http.driver import API, DriverNode, grant, node_at
from tests.objects import objects
from tests.rooms.sqlpp.http.test_row_rights import RecordingEngine
from tests.rooms.sqlpp.http.wire import refusal, rows

pytestmark = pytest.mark.integration  # an object store is served


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node whose datasets are in an object store, with a dataset `d.t`."""
    with objects() as store:
        storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
        with node_at(tmp_path_factory.mktemp("node"), storage=storage) as running:
            properties = {**store.properties, "warehouse": "s3://lake/sets"}
            body = {"name": "cloud", "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
            running.done("POST", f"{API}/lake/catalogs", body)
            services = running.built.services
            services.defaults = services.defaults._replace(sqlpp_catalog="cloud")
            rows(running, "create dataverse d; create type d.T as { id: bigint }; create dataset d.t(T) primary key id")
            yield running


def test_insert_without_credentials_is_refused_with_advice(node: DriverNode) -> None:
    """An INSERT by a user who may write but not read is refused before it reaches the engine, with the privilege that
    is missing; with that privilege the engine gets the job.
    """
    engine = RecordingEngine()
    ENGINE.put(node.built.services, engine)  # type: ignore[arg-type]
    grant(node, "ben", "use_catalog use_schema modify_table", kind="CATALOG", on="cloud")

    status, message = refusal(node, "insert into d.t ({'id': 1})", user="ben")
    assert (status, "grant SELECT_TABLE" in message, engine.jobs) == (403, True, [])

    grant(node, "ben", "select_table", kind="TABLE", on="cloud.d.t")
    rows(node, "insert into d.t ({'id': 1})", user="ben")
    assert [job.kind for job in engine.jobs] == ["insert"]
