# SPDX-License-Identifier: Apache-2.0
"""Topics as sources, on a real broker: ranges between checkpoint and pin, lost records, transactions, compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from limnos.pipeline.engine.sources.values import SourceFailed
from limnos.pipeline.source_declarations import LostRecordPolicy
from limnos.pipeline.topic_offsets import read_offsets
from tests.pipeline.engine.sources.topics.conftest import ids

if TYPE_CHECKING:
    from tests.pipeline.engine.sources.topics.conftest import Topic

pytestmark = [
    pytest.mark.spark,
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_reads_continue_at_checkpoint_and_end_at_pin(topic: Topic) -> None:
    """A read ends at the run's pin, the next one continues there, and a read without new records has none."""
    topic.create()
    topic.produce([{"id": 1}, {"id": 2}])
    topic.produce([{"id": 10}], partition=1)
    pin = topic.pin()
    topic.produce([{"id": 3}])

    first = topic.read(pinned=pin)
    again = topic.read(pinned=pin)
    second = topic.read(before=first.pin)
    third = topic.read(before=second.pin)

    assert (ids(first), ids(again)) == ([1, 2, 10], [1, 2, 10])
    assert ids(second) == [3]
    assert ids(third) == []
    assert third.pin.fingerprint == second.pin.fingerprint
    assert [tuple(row) for row in second.frame.collect()] == [(3, 0, 2)]


def test_new_partition_is_read_from_its_start(topic: Topic) -> None:
    """A partition that was added after the last read is read from its first record, also after `from: latest`."""
    kafka = topic.kafka(start="latest")
    topic.create(partitions=1)
    topic.produce([{"id": 1}])
    first = topic.read(kafka)
    topic.widen(2)
    topic.produce([{"id": 20}, {"id": 21}], partition=1)
    topic.produce([{"id": 2}])
    second = topic.read(kafka, before=first.pin)

    assert ids(first) == []
    assert ids(second) == [2, 20, 21]


def test_first_read_begins_at_time(topic: Topic) -> None:
    """`from` with a time begins at the first record that is not older; a partition without one begins at its end."""
    topic.create()
    topic.produce([{"id": 1}], timestamp=1_700_000_000_000)
    topic.produce([{"id": 2}], timestamp=1_750_000_000_000)
    topic.produce([{"id": 10}], timestamp=1_700_000_000_000, partition=1)

    assert ids(topic.read(topic.kafka(start="2025-01-01T00:00:00Z"))) == [2]


def test_records_of_run_are_bounded(topic: Topic) -> None:
    """A run advances by at most `records` offsets, shared by the backlogs, and later runs read the rest once."""
    topic.create()
    topic.produce([{"id": each} for each in range(6)])
    topic.produce([{"id": each} for each in range(100, 103)], partition=1)
    kafka = topic.kafka(records_max=3)
    reads = [topic.read(kafka)]
    for _ in range(3):
        reads.append(topic.read(kafka, before=reads[-1].pin))
    whole = topic.read(kafka, before=reads[0].pin, whole=True)

    assert [ids(each) for each in reads] == [[0, 1, 100], [2, 3, 101], [4, 5, 102], []]
    assert ids(whole) == [0, 1, 2, 3, 100, 101]


def test_lost_records_are_refused_with_their_offsets(topic: Topic) -> None:
    """Records that retention removed unread fail the read by partition and offsets; accepted, they are counted."""
    topic.create()
    topic.produce([{"id": each} for each in range(5)])
    first = topic.read(topic.kafka(records_max=1))
    topic.remove_before({0: 4})

    with pytest.raises(SourceFailed, match=r"3 records were removed .*partition 0: offsets 1 to 3.*lost: accept"):
        topic.read(before=first.pin)
    accepted = topic.read(topic.kafka(lost=LostRecordPolicy.ACCEPT), before=first.pin)
    assert accepted.malformed is not None
    findings = accepted.malformed.findings()

    assert ids(accepted) == [4]
    assert (findings[0].action, findings[0].broken, findings[0].held) == ("warn", 3, False)
    assert "partition 0: offsets 1 to 3" in findings[0].message
    assert topic.read(before=first.pin, whole=True).missing is not None


def test_recreated_topic_is_refused(topic: Topic) -> None:
    """A topic that was deleted and created again is another one, even if it has more records than before."""
    topic.create()
    topic.produce([{"id": 1}])
    first = topic.read()
    topic.delete()
    topic.create()
    topic.produce([{"id": 7}, {"id": 8}])

    with pytest.raises(SourceFailed, match=r"deleted and created again since it was read.*--full"):
        topic.read(before=first.pin)
    accepted = topic.read(topic.kafka(lost=LostRecordPolicy.ACCEPT), before=first.pin)
    assert ids(accepted) == [7, 8]


def test_recreated_topic_is_refused_without_ids(topic: Topic) -> None:
    """Without the topic's id, an end below the checkpoint is refused with both offsets."""
    topic.create()
    topic.produce([{"id": 1}])
    first = topic.read()
    offsets = read_offsets(first.pin.fingerprint)
    assert offsets is not None
    from dataclasses import replace

    older = replace(first.pin, fingerprint=replace(offsets, topic_id=None, ends=(9, 0)).text())

    with pytest.raises(SourceFailed, match=r"partition 0 ends at offset 1, and it was read up to 9"):
        topic.read(before=older)


def test_topic_recreated_during_run_is_refused(topic: Topic) -> None:
    """A pin of a topic that no longer exists is refused, with advice to start a new run."""
    topic.create()
    topic.produce([{"id": 1}])
    pin = topic.pin()
    topic.delete()
    topic.create()

    with pytest.raises(SourceFailed, match="during the run: start a new run"):
        topic.read(pinned=pin)


def test_records_of_aborted_transactions_are_not_read(topic: Topic) -> None:
    """Only committed records are read, and a read ends before an open transaction."""
    topic.create()
    producer = Producer({"bootstrap.servers": topic.access.brokers, "transactional.id": topic.name, "log_level": 0})
    producer.init_transactions(60)
    for value, is_committed in ((b'{"id": 1}', True), (b'{"id": 2}', False), (b'{"id": 3}', True)):
        producer.begin_transaction()
        producer.produce(topic.name, value, partition=0)
        producer.flush()
        if is_committed:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.begin_transaction()
    producer.produce(topic.name, b'{"id": 4}', partition=0)
    producer.flush()
    topic.produce([{"id": 5}])
    first = topic.read()
    producer.commit_transaction()
    second = topic.read(before=first.pin)

    assert (ids(first), ids(second)) == ([1, 3], [4, 5])


def test_compacted_read_has_newest_record_of_each_key(topic: Topic) -> None:
    """`compact` keeps the newest record of each key, tombstones included, and all records without a key."""
    topic.create()
    for key, value in ((b"a", {"id": 1}), (b"b", {"id": 2}), (b"a", {"id": 3}), (b"b", None)):
        topic.produce([value], key=key)
    topic.produce([{"id": 4}, {"id": 5}])
    kafka = topic.kafka(columns={"key": "key", "tombstone": "deleted"}, is_compacted=True)

    rows = {(row["key"], row["id"], row["deleted"]) for row in topic.read(kafka).frame.collect()}

    assert rows == {("a", 3, False), ("b", None, True), (None, 4, False), (None, 5, False)}
