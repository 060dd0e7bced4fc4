# SPDX-License-Identifier: Apache-2.0
"""Formats of values on a real broker: JSON, text, bytes and Avro, with malformed records, and a registry's schemas."""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING

import fastavro
import pytest

from limnos.pipeline.engine.sources.values import SourceFailed
from limnos.pipeline.source_declarations import MalformedRowPolicy, RecordFormat
from tests.pipeline.engine.sources.topics.conftest import ids
from tests.pipeline.engine.sources.topics.registries import Registry, registry_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limnos.pipeline.engine.sources import SourceRead
    from tests.pipeline.engine.sources.topics.conftest import Topic

pytestmark = [
    pytest.mark.spark,
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "city", "type": ["null", "string"], "default": None}]}  # type: ignore[misc]


def encoded(schema: Mapping[str, object], value: Mapping[str, object], *, number: int | None = None) -> bytes:
    """Return a value in Avro, with `number` in the wire format of registries."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, dict(schema), value)
    return (b"" if number is None else struct.pack(">bI", 0, number)) + out.getvalue()


def bad_rows(read: SourceRead) -> list[tuple[object, object]]:
    """Return text and place of the malformed records."""
    assert read.malformed is not None
    return sorted((row["_text"], row["_path"].partition("/")[2]) for row in read.malformed.rows.collect())


def test_malformed_record_has_text_and_place(topic: Topic) -> None:
    """Values of another type, other JSON, no JSON, and bytes that are no text are malformed; a tombstone is a row."""
    topic.create(partitions=1)
    topic.produce([{"id": 1}, {"id": "x"}, b"", b"[1]", b"null", b"\xff\xfe", None, {"id": 2, "more": 1}])
    read = topic.read(topic.kafka(malformed=MalformedRowPolicy.KEEP))
    assert read.malformed is not None
    (finding,) = read.malformed.findings()

    assert ids(read) == [1, None, 2]
    assert bad_rows(read) == [
        ("", "0/2"),
        ("//4=", "0/5"),
        ("[1]", "0/3"),
        ("null", "0/4"),
        ('{"id": "x"}', "0/1"),
    ]
    assert (finding.broken, finding.checked, finding.action, read.malformed.keep) == (5, 8, "keep", True)


def test_text_and_bytes_have_one_column(topic: Topic) -> None:
    """`string` has texts and refuses other bytes; `binary` has all bytes; keys are texts."""
    topic.create(partitions=1)
    topic.produce([b"a", b"\xff"], key=b"k")
    text = topic.read(topic.kafka(format=RecordFormat.STRING, schema=None, columns={"key": "key"}))
    raw = topic.read(topic.kafka(format=RecordFormat.BINARY, schema=None, columns={}))

    assert [tuple(row) for row in text.frame.collect()] == [("a", "k")]
    assert bad_rows(text) == [("/w==", "0/1")]
    assert sorted(bytes(row["value"]) for row in raw.frame.collect()) == [b"a", b"\xff"]


def test_declared_avro_is_decoded(topic: Topic) -> None:
    """Values in Avro have the columns of the declared schema, and other bytes are malformed."""
    topic.create(partitions=1)
    topic.produce([encoded(NEW, {"id": 7, "city": "Bonn"}), b"\x01"])
    read = topic.read(topic.kafka(format=RecordFormat.AVRO, schema=json.dumps(NEW)))

    assert [(row["id"], row["city"], row["at"]) for row in read.frame.collect()] == [(7, "Bonn", 0)]
    assert bad_rows(read) == [("AQ==", "0/1")]


def test_registry_schemas_decode_each_record(topic: Topic) -> None:
    """Each record is read by its own schema, with the newest one's columns; an unknown id is malformed."""
    topic.create(partitions=1)
    with registry_server(Registry({f"{topic.name}-value": {1: (11, OLD), 2: (12, NEW)}})) as url:
        kafka = topic.kafka(format=RecordFormat.AVRO, schema=None, registry=url)
        topic.produce(
            [
                encoded(OLD, {"id": 1}, number=11),
                encoded(NEW, {"id": 2, "city": "Bonn"}, number=12),
                encoded(NEW, {"id": 3, "city": None}, number=99),
                b"\x01\x00\x00\x00\x0c",
            ]
        )
        pin = topic.pin(kafka)
        read = topic.read(kafka, pinned=pin)
        rows = sorted((row["id"], row["city"]) for row in read.frame.collect())

    assert rows == [(1, None), (2, "Bonn")]
    assert sorted(str(place) for _, place in bad_rows(read)) == ["0/2", "0/3"]
    assert '"schemas":[11,12]' in (pin.fingerprint or "")


def test_registry_errors_name_the_next_step(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing subject, wrong credentials and a silent registry are errors that say what to do."""
    topic.create(partitions=1)
    topic.produce([b"x"])
    monkeypatch.setenv("LIMNOS_TEST_REGISTRY", "wrong-Secret")
    with registry_server(Registry({}, password="right")) as url:
        login = {"registry_user": "ana", "registry_password_env": "LIMNOS_TEST_REGISTRY"}
        kafka = topic.kafka(format=RecordFormat.AVRO, schema=None, registry=url, **login)
        with pytest.raises(SourceFailed, match="check `registry_user` and `registry_password_env`") as refused:
            topic.read(kafka)
        monkeypatch.setenv("LIMNOS_TEST_REGISTRY", "right")
        with pytest.raises(SourceFailed, match=f"it has no subject {topic.name}-value"):
            topic.read(kafka)

    assert "wrong-Secret" not in refused.value.message
    with pytest.raises(SourceFailed, match="does not answer within"):
        topic.read(kafka)


def test_columns_of_one_name_are_refused(topic: Topic) -> None:
    """A column of the record with the name of one of the value is refused, with the way to rename it."""
    topic.create(partitions=1)

    with pytest.raises(SourceFailed, match="`Offset as`"):
        topic.read(topic.kafka(schema="offset INT", columns={"offset": "Offset"}))
