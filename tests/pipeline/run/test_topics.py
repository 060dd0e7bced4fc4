# SPDX-License-Identifier: Apache-2.0
"""Runs over a topic of a real broker while a producer writes: each record once, whenever the driver is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic

from tests.pipeline.run.test_kills import Driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.client import Client
    from tests.brokers import KafkaServer
    from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KILLS = int(os.environ.get("LIMNOS_TEST_KAFKA_KILLS", "3"))
PARTITIONS = 3
PIPELINE = """
pipeline: SPACE
catalog: main
sources:
  clicks:
    kafka: SPACE
    brokers: 127.0.0.1:PORT
    format: json
    schema: id BIGINT, word STRING
    columns: [key, partition as part, offset as at]
    malformed: keep
    records: 5000
steps:
  SPACE.clicks: {load: clicks, write: append, incremental: true}
  SPACE.copies: {catalog: lance, load: clicks, write: append, incremental: true}
  SPACE.words: {sql: "SELECT word, count(*) AS n FROM SPACE.clicks GROUP BY word"}
"""


@dataclass(kw_only=True)
class Records:
    """A producer that writes until it is stopped, and what the broker has acknowledged."""

    brokers: str
    topic: str
    acknowledged: list[tuple[int, int, bytes]] = field(default_factory=list)
    refused: list[object] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Produce some records at a time, every tenth of them malformed or without a value, and fewer after a while,
        so that the last runs end on a slow machine, too.
        """
        producer = Producer({"bootstrap.servers": self.brokers, "log_level": 0})
        number = 0
        while not self.over.wait(0.1):
            for _ in range(20 if number < 3000 else 1):
                data = json.dumps({"id": number, "word": f"w{number % 7}"}).encode()
                value = {3: b"{broken", 7: None}.get(number % 20, data)
                producer.produce(self.topic, value, key=str(number).encode(), on_delivery=self._delivered)
                number += 1
            producer.poll(0)
        self.refused.extend(["not sent"] * producer.flush(60))

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self.refused.append(error)
        else:
            value = message.value()
            self.acknowledged.append((partition, offset, b"" if value is None else bytes(value)))


@dataclass(kw_only=True)
class Clicks:
    """The test's topic, its pipeline file, and its producer."""

    file: Path
    records: Records

    @property
    def space(self) -> str:
        """The namespace, topic and pipeline."""
        return self.file.stem


@pytest.fixture
def clicks(
    admin: Client, kafka_server: KafkaServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Clicks]:
    """A topic with a producer, and a pipeline over it in a namespace of the same name."""
    space = "t" + "".join(filter(str.isalnum, request.node.name))[-20:].lower()
    admin.namespaces.create(f"main.{space}")
    client = kafka_server.client()
    client.create_topics([NewTopic(space, PARTITIONS, 1)])[space].result()
    path = tmp_path / f"{space}.yaml"
    path.write_text(PIPELINE.replace("SPACE", space).replace("PORT", str(kafka_server.port)))
    records = Records(brokers=f"127.0.0.1:{kafka_server.port}", topic=space)
    writer = threading.Thread(target=records.run, daemon=True)
    writer.start()
    yield Clicks(file=path, records=records)
    records.over.set()
    writer.join(timeout=90)


def test_killed_drivers_read_each_record_once(
    server: LiveServer, admin: Client, spark: SparkSession, clicks: Clicks
) -> None:
    """Drivers are killed at random moments while a producer writes; runs are resumed or started anew. At the end an
    Iceberg table and a Lance table have exactly the acknowledged records, each offset once.
    """
    chance = random.Random(50)
    moments = []
    for number in range(KILLS):
        driver, run = Driver(server, "run", str(clicks.file)), ""
        waited_for = chance.choice(["began", "running", "running", "done"])
        for event in driver.events():
            run = str(event["run"])
            if event["state"] == waited_for:
                break
        time.sleep(chance.uniform(0, 2))
        os.kill(driver.process.pid, signal.SIGKILL)
        driver.process.wait()
        state = _state_after(admin, run)
        is_resumed = state == "lost" and chance.random() < 0.5
        if is_resumed:
            ended = Driver(server, "resume", run).ended()
            assert (ended["state"], ended["exit_code"]) == ("published", 0), ended
        moments.append((number, waited_for, state, is_resumed, len(clicks.records.acknowledged)))
    clicks.records.over.set()
    while "not drained":
        ended = Driver(server, "run", str(clicks.file)).ended()
        assert (ended["state"], ended["exit_code"]) == ("published", 0), ended
        if _count(spark, clicks.space) == len(clicks.records.acknowledged):
            break
    print(*moments, sep="\n")

    assert clicks.records.refused == []
    assert _rows(spark, clicks.space) == sorted(clicks.records.acknowledged)
    assert _lance_rows(admin, clicks.space) == sorted(clicks.records.acknowledged)
    assert _count(spark, clicks.space) > 0


def _state_after(admin: Client, run: str) -> str:
    seen = admin.runs.load(run)
    while seen.state == "running":
        time.sleep(0.2)
        seen = admin.runs.load(run)
    return seen.state


def _count(spark: SparkSession, space: str) -> int:
    return len(_rows(spark, space))


def _rows(spark: SparkSession, space: str) -> list[tuple[int, int, bytes]]:
    """Return partition, offset and value of the rows of both Iceberg tables."""
    good = spark.sql(f"SELECT part, at, id, word FROM main.{space}.clicks").collect()
    bad = spark.sql(f"SELECT _path, _text FROM main.{space}.clicks__malformed").collect()
    return _records([row.asDict() for row in good], bad=[row.asDict() for row in bad])


def _lance_rows(admin: Client, space: str) -> list[tuple[int, int, bytes]]:
    """Return the same of the Lance tables."""
    good, bad = (admin.lance.dataset(f"lance.{space}.{name}").to_table() for name in ("copies", "copies__malformed"))
    return _records(good.to_pylist(), bad=bad.to_pylist())


def _records(good: list[dict[str, Any]], *, bad: list[dict[str, Any]]) -> list[tuple[int, int, bytes]]:
    rows = [
        (row["part"], row["at"], json.dumps({"id": row["id"], "word": row["word"]}).encode() if row["word"] else b"")
        for row in good
    ]
    for row in bad:
        _, partition, offset = row["_path"].split("/")
        rows.append((int(partition), int(offset), row["_text"].encode()))
    return sorted(rows)
