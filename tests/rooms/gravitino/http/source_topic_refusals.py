# SPDX-License-Identifier: Apache-2.0
"""The requests of a fourth table of refusals, `source_topic_refusals.md`: for topics of a connector catalog, over a
real Kafka broker.

`python -m tests.rooms.gravitino.http.source_topic_refusals` rewrites the table. It has no lists, because the cluster
also has topics of other tests.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from limnos.config.storage import SourcesSection
from tests.brokers import KafkaServer, kafka_server
from tests.http import refusal_tables
from tests.http.driver import API, DriverNode, node_at
from tests.http.refusal_tables import RefusalCase, own

TABLE = Path(__file__).with_suffix(".md")
_USE = "use_catalog use_schema"
CALLERS: dict[str, str] = {
    "nobody": "",
    "stranger": "",
    "member": "",
    "visitor": "use_catalog",
    "uses": _USE,
    "creator": f"{_USE} create_topic",
    "consumer": f"{_USE} consume_topic",
    "producer": f"{_USE} produce_topic",
    "tabler": f"{_USE} create_table select_table modify_table",
    "keyless": "use_schema consume_topic produce_topic",
    "granter": "manage_grants",
    "topic_owner": _USE,
    "keeper": "use_catalog",
    "owner": "",
    "laker": "",
    "admin": "",
}
"""Each column: the caller's privileges on the metalake. `topic_owner` owns the topics, `keeper` the schema, `owner` the
catalog.
"""
TOPICS = "/metalakes/{m}/catalogs/{c}/schemas/{s}/topics"
ONE = f"{TOPICS}/{{topic}}"
COMMENT = {"updates": [{"@type": "updateComment", "newComment": "c"}]}
SETTING = {"updates": [{"@type": "setProperty", "property": "retention.ms", "value": "5000"}]}


@contextmanager
def node_over(folder: Path, server: KafkaServer) -> Iterator[DriverNode]:
    """Return a node with a catalog `bus` of the cluster."""
    address = f"127.0.0.1:{server.port}"
    with node_at(folder, sources=SourcesSection(allowed_addresses=(address,), timeout_s=25.0)) as node:
        body = {"name": "bus", "type": "messaging", "provider": "kafka", "properties": {"bootstrap.servers": address}}
        node.done("POST", f"{API}/lake/catalogs", body)
        yield node


def prepare(node: DriverNode) -> None:
    """Create all users and objects of the rows."""
    topics = f"{API}/lake/catalogs/bus/schemas/default/topics"
    refusal_tables.hire(node, CALLERS)
    own(node, "keeper", "SCHEMA", "bus.default")
    for name in ("cells.t", *(f"cells.drop_{who}" for who in CALLERS)):
        node.done("POST", topics, {"name": name})
        own(node, "topic_owner", "TOPIC", f"bus.default.{name}")
    refusal_tables.endow(node, CALLERS, catalog="bus")


def _case(route: str, thing: str, *names: str, body: object = None) -> RefusalCase:
    return refusal_tables.case(route, thing, *names, root="/api", body=body)


def cases(_node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows of the table for one caller."""
    at = ("lake", "bus")
    yield _case(f"POST {TOPICS}", "in schema", *at, "default", body={"name": f"cells.new_{who}"})
    yield _case(f"POST {TOPICS}", "taken name", *at, "default", body={"name": "cells.t"})
    yield _case(f"GET {TOPICS}", "of no schema", *at, "gone")
    yield _case(f"POST {TOPICS}", "in no schema", *at, "gone", body={"name": f"cells.new_{who}"})
    for name, thing in (("cells.t", "topic"), ("cells.gone", "no topic")):
        missing = name == "cells.gone"
        yield _case(f"GET {ONE}", thing, *at, "default", name)
        yield _case(f"PUT {ONE}", f"{thing}, comment", *at, "default", name, body=COMMENT)
        yield _case(f"PUT {ONE}", f"{thing}, setting", *at, "default", name, body=SETTING)
        yield _case(f"DELETE {ONE}", thing, *at, "default", name if missing else f"cells.drop_{who}")
        yield _case("GET /metalakes/{m}/owners/{type}/{f}", thing, "lake", "topic", f"bus.default.{name}")
        yield _case(
            "PUT /metalakes/{m}/owners/{type}/{f}",
            thing,
            "lake",
            "topic",
            f"bus.default.{name}",
            body={"name": "topic_owner", "type": "USER"},
        )


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as place,
        kafka_server() as running,
        node_over(Path(place), running) as running_node,
    ):
        prepare(running_node)
        refusal_tables.keep(TABLE, running_node, cases=cases, callers=CALLERS)
