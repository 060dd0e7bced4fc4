# SPDX-License-Identifier: Apache-2.0
"""Connector catalogs of a Kafka cluster: topics over Gravitino REST, with the rights of the tree, also while the
cluster fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from limnos.config.storage import SourcesSection
from tests.brokers import PASSWORD, USER, KafkaServer
from tests.http.driver import API, DriverNode, grant, node_at
from tests.rooms.gravitino.http.source_catalogs import (
    listed,
    removed,
    sees_it_cut,
    sees_it_silent,
    set_to,
    updates,
    wait_for,
)

pytestmark = [pytest.mark.integration, pytest.mark.room("connectors")]

BUS = f"{API}/lake/catalogs/bus"
SCHEMA = f"{BUS}/schemas/default"
TOPICS = f"{SCHEMA}/topics"
LOGIN = {
    "gravitino.bypass.security.protocol": "SASL_PLAINTEXT",
    "gravitino.bypass.sasl.mechanism": "PLAIN",
    "gravitino.bypass.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}";'
    ),
}
_NUMBERS = count(1)


class Bus(NamedTuple):
    """A node with catalog `bus`, the cluster that it shows, and the prefix of a test's topics."""

    node: DriverNode
    server: KafkaServer
    client: AdminClient
    mine: str

    def made(self, *names: str, partitions: int = 1) -> list[str]:
        """Create topics directly in the cluster."""
        topics = [f"{self.mine}{name}" for name in names]
        done = self.client.create_topics([NewTopic(each, partitions, 1) for each in topics])
        for each in done.values():
            each.result(60)
        while not set(topics) <= set(self.client.list_topics(timeout=60).topics):
            time.sleep(0.05)  # the controller knows them and informs the broker
        return topics

    def seen(self, *, user: str = "admin") -> list[str]:
        """Return the names of this test's topics that a list has."""
        names = listed(self.node, TOPICS, user=user)
        return [each.removeprefix(self.mine) for each in names if each.startswith(self.mine)]


@pytest.fixture
def bus(kafka_server: KafkaServer, fresh: Callable[[str], Path]) -> Iterator[Bus]:
    """A node, and the cluster behind the bridge."""
    with _bus(kafka_server, fresh("bus"), timeout_s=20.0) as running_bus:
        yield running_bus


@pytest.fixture
def hasty(kafka_server: KafkaServer, fresh: Callable[[str], Path]) -> Iterator[Bus]:
    """A node whose requests to the source have a short timeout."""
    with _bus(kafka_server, fresh("hasty"), timeout_s=2.0) as running_bus:
        yield running_bus


@contextmanager
def _bus(server: KafkaServer, folder: Path, *, timeout_s: float) -> Iterator[Bus]:
    ports = (server.bridge.port, server.port, server.login_port)
    sources = SourcesSection(allowed_addresses=tuple(f"127.0.0.1:{port}" for port in ports), timeout_s=timeout_s)
    with node_at(folder, sources=sources) as node:
        node.done("POST", f"{API}/lake/catalogs", _catalog(server.bridge.port))
        yield Bus(node, server, server.client(), f"t{next(_NUMBERS)}.")


def _catalog(port: int, name: str = "bus", **more: str) -> dict[str, object]:
    properties = {"bootstrap.servers": f"127.0.0.1:{port}", **more}
    return {"name": name, "type": "messaging", "provider": "kafka", "properties": properties}


def test_created_topic_exists_in_the_cluster(bus: Bus) -> None:
    """A topic created over Gravitino REST exists in the cluster with partitions and settings; its comment is stored
    here.
    """
    name = f"{bus.mine}orders"
    body = {"name": name, "comment": "whose", "properties": {"partition-count": "3", "retention.ms": "60000"}}

    topic = bus.node.done("POST", TOPICS, body)["topic"]

    assert topic == bus.node.done("GET", f"{TOPICS}/{name}")["topic"]
    assert (topic["name"], topic["comment"], topic["audit"]["creator"]) == (name, "whose", "admin")
    properties = topic["properties"]
    assert (properties["partition-count"], properties["replication-factor"], properties["retention.ms"]) == (
        "3",
        "1",
        "60000",
    )
    assert properties["cleanup.policy"] == "delete"
    description = bus.client.describe_topics(TopicCollection([name]))[name].result(60)
    assert len(description.partitions) == 3
    again = bus.node.post(TOPICS, body)
    assert (again.status, again["code"], again["type"]) == (409, 1004, "TopicAlreadyExistsException")


def test_default_schema_is_listed_and_cannot_be_changed(bus: Bus) -> None:
    """A cluster has exactly the schema `default`, which cannot be changed."""
    assert [each["name"] for each in bus.node.done("GET", f"{BUS}/schemas")["identifiers"]] == ["default"]
    assert bus.node.done("GET", SCHEMA)["schema"]["name"] == "default"
    assert bus.node.get(f"{BUS}/schemas/other").status == 404
    assert bus.node.get(f"{BUS}/schemas/other/topics").status == 404
    assert bus.node.post(f"{BUS}/schemas/other/topics", {"name": "x"}).status == 404
    for answer in (
        bus.node.post(f"{BUS}/schemas", {"name": "other"}),
        bus.node.delete(SCHEMA),
        bus.node.put(SCHEMA, updates(set_to("a", "b"))),
        bus.node.get(f"{SCHEMA}/tables"),
        bus.node.get(f"{SCHEMA}/filesets"),
    ):
        assert (answer.status, answer["code"]) == (405, 1006), answer.body
    assert bus.node.done("DELETE", f"{BUS}/schemas/other")["dropped"] is False


def test_topic_is_altered(bus: Bus) -> None:
    """Settings, the number of partitions and the comment of a topic can be changed."""
    (name,) = bus.made("a")
    one = f"{TOPICS}/{name}"
    changed = bus.node.done(
        "PUT",
        one,
        updates(
            set_to("retention.ms", "7000"),
            set_to("partition-count", "4"),
            {"@type": "updateComment", "newComment": "c"},
        ),
    )["topic"]

    assert (changed["comment"], changed["properties"]["retention.ms"], changed["properties"]["partition-count"]) == (
        "c",
        "7000",
        "4",
    )
    back = bus.node.done(
        "PUT", one, updates(removed("retention.ms"), set_to("segment.bytes", "1048576"), removed("none"))
    )
    assert back["topic"]["properties"]["retention.ms"] == "604800000"
    assert back["topic"]["properties"]["segment.bytes"] == "1048576"
    assert back["topic"]["comment"] == "c"
    bare = bus.node.done("PUT", one, updates({"@type": "updateComment", "newComment": None}))["topic"]
    assert "comment" not in bare
    assert (
        bus.node.done("PUT", one, updates(set_to("partition-count", "4")))["topic"]["properties"]["partition-count"]
        == "4"
    )


WRONG: tuple[tuple[dict[str, object], str], ...] = (
    (set_to("no.such", "1"), "Unknown topic config name"),
    (set_to("retention.ms", "soon"), "Not a number"),
    (set_to("partition-count", "1"), "would not be an increase"),
    (set_to("partition-count", "many"), "whole number"),
    (set_to("partition-count", "0"), "whole number"),
    (set_to("replication-factor", "1"), "when a topic is created"),
    (removed("partition-count"), "cannot be removed"),
    (removed("replication-factor"), "cannot be removed"),
    (set_to("in-use", "true"), "reserved"),
)


def test_invalid_change_is_refused_and_nothing_applied(bus: Bus) -> None:
    """Each invalid change is refused with a message, and other changes of the request are not made."""
    (name,) = bus.made("a", partitions=2)
    before = bus.node.done("GET", f"{TOPICS}/{name}")["topic"]
    for wrong, words in WRONG:
        beside = (set_to("segment.ms", "5000"), {"@type": "updateComment", "newComment": "half"})
        answer = bus.node.put(f"{TOPICS}/{name}", updates(*beside, wrong))

        assert (answer.status, answer["code"]) == (400, 1001), (wrong, answer.body)
        assert words in str(answer["message"]), answer.body
    assert bus.node.done("GET", f"{TOPICS}/{name}")["topic"] == before
    assert bus.node.put(f"{TOPICS}/{bus.mine}none", updates(set_to("retention.ms", "1"))).status == 404
    assert (
        bus.node.put(f"{TOPICS}/{bus.mine}none", updates({"@type": "updateComment", "newComment": "x"})).status == 404
    )
    assert bus.node.put(f"{TOPICS}/{name}", updates({"@type": "rename", "newName": "x"})).status == 400


def test_invalid_topic_is_refused_with_message_of_the_cluster(bus: Bus) -> None:
    """A name, number or setting that the cluster refuses is answered with the cluster's message, and nothing is
    created.
    """
    bus.made("a_b")
    for name, properties, words in (
        ("bad name", {}, "illegal"),
        ("b=c", {}, "invalid"),
        ("a.b", {}, "collides"),
        ("x", {"replication-factor": "3"}, "1 broker"),
        ("x", {"partition-count": "-1"}, "whole number"),
        ("x", {"no.such": "1"}, "Unknown topic config"),
        ("x", {"in-use": "true"}, "reserved"),
    ):
        topic_name = name if name == "bad name" else f"{bus.mine}{name}"
        answer = bus.node.post(TOPICS, {"name": topic_name, "properties": properties})
        assert (answer.status, answer["code"]) == (400, 1001), answer.body
        assert words in str(answer["message"]), answer.body
    assert bus.seen() == ["a_b"]


def test_requests_for_a_missing_topic_do_not_create_it(bus: Bus) -> None:
    """Loads, owner requests and drops of a missing topic do not create it, although the cluster creates topics that
    clients request. Internal topics are hidden.
    """
    name = f"{bus.mine}none"

    assert bus.node.get(f"{TOPICS}/{name}").status == 404
    assert bus.node.get(f"{API}/lake/owners/topic/bus.default.{name}").status == 404
    assert bus.node.done("DELETE", f"{TOPICS}/{name}")["dropped"] is False
    assert name not in bus.client.list_topics(timeout=60).topics
    assert bus.node.get(f"{TOPICS}/__consumer_offsets").status == 404
    assert bus.node.done("DELETE", f"{TOPICS}/__consumer_offsets")["dropped"] is False


def test_invalid_topic_name_does_not_bypass_a_denial(bus: Bus) -> None:
    """Names that are not valid topic names are refused or missing. A denial on a topic cannot be bypassed with them."""
    node, (name,) = bus.node, bus.made("a")
    grant(node, "bea", "use_catalog use_schema consume_topic produce_topic", kind="CATALOG", on="bus")
    grant(node, "bea", "consume_topic produce_topic", kind="TOPIC", on=f"bus.default.{name}", condition="deny")
    assert node.get(f"{TOPICS}/{name}", user="bea").status == 403

    for other in (
        f"{name}%00",
        f"{name}%00x",
        name.upper(),
        f"{name}%20",
        f"{name}%0A",
        "a%2Fb",
        "gr%C3%B6%C3%9Fe",
        "x" * 250,
    ):
        path = f"{TOPICS}/{other}"
        assert node.get(path, user="bea").status in (400, 404), other
        assert node.put(path, updates(set_to("retention.ms", "1")), user="bea").status in (400, 404), other
        assert node.delete(path).status in (200, 400), other
    assert bus.seen() == ["a"]


def test_dropped_topic_loses_its_comment_and_grants(bus: Bus) -> None:
    """A dropped topic is 404 immediately. A later topic of its name has neither its comment nor its grants."""
    name = f"{bus.mine}a"
    bus.node.done("POST", TOPICS, {"name": name, "comment": "old"})
    grant(bus.node, "bea", "use_catalog use_schema", kind="CATALOG", on="bus")
    grant(bus.node, "bea", "consume_topic", kind="TOPIC", on=f"bus.default.{name}")
    assert bus.seen(user="bea") == ["a"]

    assert bus.node.done("DELETE", f"{TOPICS}/{name}")["dropped"] is True

    assert (bus.seen(), name in bus.client.list_topics(timeout=60).topics) == ([], False)
    assert bus.node.done("DELETE", f"{TOPICS}/{name}")["dropped"] is False
    assert "comment" not in bus.node.done("POST", TOPICS, {"name": name})["topic"]
    assert bus.seen(user="bea") == []


def test_grants_and_denials_apply_to_the_next_request(bus: Bus) -> None:
    """A grant on an existing topic, and its revoke, take effect immediately. A denial hides one of many topics."""
    node, (first, second) = bus.node, bus.made("a", "b")
    grant(node, "bea", "use_catalog use_schema", kind="CATALOG", on="bus")
    assert bus.seen(user="bea") == []
    role = grant(node, "bea", "consume_topic", kind="TOPIC", on=f"bus.default.{first}")

    assert bus.seen(user="bea") == ["a"]
    statuses = [node.get(f"{TOPICS}/{name}", user="bea").status for name in (first, second, f"{bus.mine}none")]
    assert statuses == [200, 403, 403]
    assert node.put(f"{TOPICS}/{first}", updates(set_to("retention.ms", "1")), user="bea").status == 403
    assert node.delete(f"{TOPICS}/{first}", user="bea").status == 403
    node.done(
        "PUT",
        f"{API}/lake/permissions/roles/{role}/topic/bus.default.{first}/revoke",
        {"privileges": [{"name": "consume_topic", "condition": "allow"}]},
    )
    assert bus.seen(user="bea") == []
    assert node.get(f"{TOPICS}/{first}", user="bea").status == 403
    grant(node, "bea", "produce_topic", kind="CATALOG", on="bus")
    grant(node, "bea", "consume_topic produce_topic", kind="TOPIC", on=f"bus.default.{second}", condition="deny")
    assert bus.seen(user="bea") == ["a"]
    assert node.get(f"{TOPICS}/{bus.mine}none", user="bea").status == 404
    changed = node.put(f"{TOPICS}/{first}", updates(set_to("retention.ms", "9")), user="bea")
    assert changed.json()["topic"]["properties"]["retention.ms"] == "9"


def test_topics_support_owners_and_tags(bus: Bus) -> None:
    """The creator of a topic owns it; existing topics can get an owner and tags; privileges of tables are refused."""
    node, lake, (name,) = bus.node, f"{API}/lake", bus.made("a")
    grant(node, "bea", "use_catalog use_schema create_topic", kind="CATALOG", on="bus")
    node.done("POST", TOPICS, {"name": f"{bus.mine}mine"}, user="bea")
    assert node.done("GET", f"{lake}/owners/topic/bus.default.{bus.mine}mine")["owner"]["name"] == "bea"
    assert bus.seen(user="bea") == ["mine"]
    node.done("PUT", f"{lake}/owners/topic/bus.default.{name}", {"name": "bea", "type": "USER"})
    node.done("POST", f"{lake}/tags", {"name": "red"})
    node.done("POST", f"{lake}/objects/topic/bus.default.{name}/tags", {"tagsToAdd": ["red"]})

    assert bus.seen(user="bea") == ["a", "mine"]
    assert node.done("GET", f"{lake}/objects/topic/bus.default.{name}/tags")["names"] == ["red"]
    assert node.done("DELETE", f"{TOPICS}/{bus.mine}mine", user="bea")["dropped"] is True
    wrong = {
        "name": "w",
        "securableObjects": [
            {"fullName": "bus", "type": "CATALOG", "privileges": [{"name": "select_table", "condition": "allow"}]}
        ],
    }
    assert node.post(f"{lake}/roles", wrong).status == 400


def test_unreachable_cluster_returns_502_without_affecting_others(hasty: Bus) -> None:
    """While the cluster is disconnected or does not answer, its requests are refused with 502 and code 1007. Other
    catalogs are answered, and access is decided. Afterwards requests succeed again.
    """
    node, bridge, (name,) = hasty.node, hasty.server.bridge, hasty.made("a")
    grant(node, "bea", "use_catalog", kind="CATALOG", on="bus")
    requests = (("GET", TOPICS, None), ("GET", f"{TOPICS}/{name}", None), ("POST", TOPICS, {"name": f"{hasty.mine}b"}))

    sees_it_cut(node, bridge, requests=requests, known=BUS, unable="bea")
    wait_for(node, TOPICS)
    changed = updates(set_to("retention.ms", "1"))
    sees_it_silent(node, bridge, looks=TOPICS, changes=("PUT", f"{TOPICS}/{name}", changed))
    wait_for(node, TOPICS)
    assert hasty.seen() == ["a"]


def test_java_client_login_settings_are_accepted(bus: Bus) -> None:
    """Login settings of Java clients are accepted. A wrong password is reported as a refused sign-in, and no answer
    contains the password.
    """
    node, port, new = bus.node, bus.server.login_port, f"{API}/lake/catalogs/testConnection"

    node.done("POST", f"{API}/lake/catalogs", _catalog(port, "safe", **LOGIN))
    bus.made("a")
    assert f"{bus.mine}a" in str(node.done("GET", f"{API}/lake/catalogs/safe/schemas/default/topics"))
    assert node.done("POST", new, _catalog(port, "other", **LOGIN))["code"] == 0
    wrong = {key: value.replace(PASSWORD, "guess") for key, value in LOGIN.items()}
    refused = node.done("POST", new, _catalog(port, "other", **wrong))
    assert (refused["code"], refused["type"]) == (1007, "ConnectionFailedException")
    assert "refuses the sign-in of this server" in refused["message"]
    assert node.done("POST", f"{API}/lake/catalogs/safe/testConnection")["code"] == 0
    assert PASSWORD not in str(node.done("GET", f"{API}/lake/catalogs/safe"))


def test_brokers_advertising_another_address_are_refused(bus: Bus, fresh: Callable[[str], Path]) -> None:
    """A cluster whose brokers advertise another address is refused. The message does not contain that address."""
    sources = SourcesSection(allowed_addresses=(f"localhost:{bus.server.port}",), timeout_s=60.0)
    with node_at(fresh("elsewhere"), sources=sources) as node:
        body = _catalog(bus.server.port)
        answer = node.post(f"{API}/lake/catalogs", body)
        assert (answer.status, answer["code"]) == (400, 1001)
        assert f"--allow-source 127.0.0.1:{bus.server.port}" in str(answer["message"])
        body["properties"] = {"bootstrap.servers": f"localhost:{bus.server.port}"}
        node.done("POST", f"{API}/lake/catalogs", body)

        refused = node.get(TOPICS)

        assert (refused.status, refused["code"]) == (502, 1007), refused.body
        assert "127.0.0.1" not in str(refused["message"])


def test_a_protected_catalog_keeps_its_topics(bus: Bus) -> None:
    """While a catalog is protected with its content, the server refuses to drop a topic of it."""
    (name,) = bus.made("a")
    bus.node.done("PUT", "/api/limnos/v1/metalakes/lake/objects/catalog/bus/protection", {"below": True})

    answer = bus.node.delete(f"{TOPICS}/{name}")

    assert (answer.status, answer["code"]) == (409, 1010)
    assert bus.seen() == ["a"]


def test_list_of_two_thousand_topics_is_fast(bus: Bus) -> None:
    """A user of all topics gets all of two thousand in a list, and a user of a few gets those."""
    bus.made(*(f"{at}" for at in range(2000)))
    grant(bus.node, "bea", "use_catalog use_schema", kind="CATALOG", on="bus")
    for at in (7, 1999):
        grant(bus.node, "bea", "consume_topic", kind="TOPIC", on=f"bus.default.{bus.mine}{at}")

    began = time.process_time()
    names = bus.seen()

    assert len(names) == 2000
    assert time.process_time() - began < 2.0
    assert bus.seen(user="bea") == ["1999", "7"]
