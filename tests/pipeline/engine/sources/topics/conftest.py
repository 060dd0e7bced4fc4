# SPDX-License-Identifier: Apache-2.0
"""Topics of the real broker, and reads of them by Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions, NewTopic

from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.engine.sources import SourceRead, SourceReadRequest, frame_of, pin_of
from limnos.pipeline.source_declarations import DeclaredSource, Kafka, KafkaAccess, RecordFormat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.pipeline.outcomes import ReadPin
    from tests.brokers import KafkaServer

AT = SourcePosition("p.yaml", 4, 2)


@dataclass
class Topic:
    """A topic of the test, with producers and reads."""

    spark: SparkSession
    server: KafkaServer
    name: str
    directory: Path
    access: KafkaAccess = field(init=False)

    def __post_init__(self) -> None:
        """Set the access to the direct listener."""
        self.access = KafkaAccess(brokers=f"127.0.0.1:{self.server.port}", timeout_s=20)

    def create(self, *, partitions: int = 2) -> None:
        """Create the topic."""
        client = self.server.client()
        for each in client.create_topics([NewTopic(self.name, partitions, 1)]).values():
            each.result()

    def delete(self) -> None:
        """Delete the topic, and wait until the broker does not list it."""
        client = self.server.client()
        for each in client.delete_topics([self.name]).values():
            each.result()
        while self.name in client.list_topics(timeout=10).topics:
            pass

    def widen(self, partitions: int) -> None:
        """Add partitions."""
        client = self.server.client()
        for each in client.create_partitions([NewPartitions(self.name, partitions)]).values():
            each.result()

    def remove_before(self, offsets: Mapping[int, int]) -> None:
        """Remove the records before an offset of each partition, as retention does."""
        from confluent_kafka import TopicPartition

        requests = [TopicPartition(self.name, partition, offset) for partition, offset in offsets.items()]
        client = self.server.client()
        for each in client.delete_records(requests).values():
            each.result()

    def produce(self, values: Iterable[object], *, partition: int = 0, key: bytes | None = None, **more: Any) -> None:  # noqa: ANN401 - arguments of the client
        """Produce values to a partition; bytes and None as they are, others as JSON."""
        producer = Producer({"bootstrap.servers": self.access.brokers, "log_level": 0})
        refused: list[object] = []
        for value in values:
            is_raw = value is None or isinstance(value, bytes)
            data = value if is_raw else json.dumps(value).encode()
            producer.produce(
                self.name,
                data,
                key=key,
                partition=partition,
                on_delivery=lambda error, _: refused.append(error) if error else None,
                **more,
            )  # type: ignore[arg-type]
        assert (producer.flush(20), refused) == (0, [])

    def kafka(self, **changes: Any) -> Kafka:  # noqa: ANN401 - fields of the declaration
        """Return the declaration: JSON with an id, and the partition and the offset."""
        own = Kafka(
            topic=self.name,
            access=self.access,
            format=RecordFormat.JSON,
            schema="id INT",
            columns={"partition": "part", "offset": "at"},
        )
        named = {field.name for field in fields(KafkaAccess)}
        access = replace(self.access, **{name: value for name, value in changes.items() if name in named})
        return replace(own, **{"access": access, **{n: value for n, value in changes.items() if n not in named}})

    def source(self, kafka: Kafka | None = None) -> DeclaredSource:
        """Return the declared source `clicks`."""
        return DeclaredSource(name="clicks", kind=kafka or self.kafka(), at=AT)

    def read(
        self,
        kafka: Kafka | None = None,
        *,
        before: ReadPin | None = None,
        pinned: ReadPin | None = None,
        whole: bool = False,
    ) -> SourceRead:
        """Read the new records; with `whole` those that were read, too."""
        return frame_of(
            SourceReadRequest(
                spark=self.spark,
                source=self.source(kafka),
                before=before,
                pinned=pinned,
                incremental=not whole,
                directory=self.directory,
                parameters={"run_id": "r", "run_at": None},
            )
        )

    def pin(self, kafka: Kafka | None = None) -> ReadPin:
        """Return the pin of a run that starts now."""
        pin = pin_of(self.spark, self.source(kafka), directory=self.directory)
        assert pin is not None
        return pin


@pytest.fixture
def topic(here: SparkSession, kafka_server: KafkaServer, request: pytest.FixtureRequest, tmp_path: Path) -> Topic:
    """A topic with the test's name, which the test creates."""
    return Topic(here, kafka_server, re.sub(r"\W", "-", request.node.name)[:200], tmp_path)


def ids(read: SourceRead) -> list[object]:
    """Return the column `id` of the rows, by partition and offset."""
    return [row["id"] for row in read.frame.orderBy("part", "at").collect()]
