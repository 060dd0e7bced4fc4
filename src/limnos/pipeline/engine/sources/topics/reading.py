# SPDX-License-Identifier: Apache-2.0
"""Topics of Kafka as DataFrames: all records between the offsets of the step's checkpoint and of the run's pin.

Spark's connector reads exactly the planned ranges, in a batch. Records that are gone unread fail the run by their
offsets, unless the source accepts that. Must not know publishing. Kafka's own consumer groups are not used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from limnos.pipeline.declaration import Expectation, ExpectationAction, RuleKind
from limnos.pipeline.engine.expectations.judgement import finding
from limnos.pipeline.engine.naming import BAD, FILE
from limnos.pipeline.engine.sources.malformed import counts, malformed_rows
from limnos.pipeline.engine.sources.topics.archives import add_connector
from limnos.pipeline.engine.sources.topics.brokers import BrokerSettings, TopicClient, topic_client
from limnos.pipeline.engine.sources.topics.formats import RECORDS, decode_records, newest_of_each_key
from limnos.pipeline.engine.sources.topics.registries import SchemaRegistry
from limnos.pipeline.engine.sources.values import MalformedRows, SourceRead, SourceReadRequest
from limnos.pipeline.outcomes import ReadPin
from limnos.pipeline.reader_options import CONNECTOR_OPTIONS
from limnos.pipeline.source_declarations import Kafka, LostRecordPolicy, RecordFormat
from limnos.pipeline.topic_offsets import (
    TopicLookup,
    TopicOffsets,
    TopicRead,
    TopicState,
    plan_read,
    ranges_text,
    read_offsets,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from limnos.pipeline.outcomes import ExpectationFinding


def topic_frame(request: SourceReadRequest, kafka: Kafka) -> SourceRead:
    """Open a topic. Raises SourceFailed: no topic, brokers that refuse or are silent, records that are gone unread."""
    settings = _prepare_settings(request, kafka)
    with topic_client(request.spark._jvm, settings) as client:  # noqa: SLF001 - the client is one of Java
        state = client.state()
        pin = read_offsets(request.pinned.fingerprint) if request.pinned else None
        if pin is None or pin.topic != kafka.topic:
            pin = _pin(request, kafka, client=client, state=state)
    _require_same_topic(request, pin, state=state)
    former_offsets = read_offsets(request.before.fingerprint) if request.before else None
    read = plan_read(pin, state, before=former_offsets, whole=not request.incremental, records_max=kafka.records_max)
    if request.incremental and kafka.lost is LostRecordPolicy.FAIL:
        _refuse_loss(request, read)
    records = _records(request, kafka, settings=settings, read=read)
    if kafka.is_compacted:
        records = newest_of_each_key(records)
    whole = decode_records(request, kafka, records=records, schemas=_schemas(request, kafka, pin=pin))
    result = SourceRead(
        frame=whole,
        pin=ReadPin(name=request.source.name, fingerprint=read.checkpoint.text()),
        missing=None if request.incremental else _gone_text(request, read),
    )
    return _with_findings(request, kafka, opened=result, read=read)


def pin_topic(request: SourceReadRequest, kafka: Kafka) -> ReadPin:
    """Return the pin of a topic for a run that starts now. Raises SourceFailed as `topic_frame` does."""
    return ReadPin(name=request.source.name, fingerprint=look_up_topic(request, kafka).pin.text())


def look_up_topic(request: SourceReadRequest, kafka: Kafka) -> TopicLookup:
    """Return the offsets of a topic now, for a plan. Raises SourceFailed as `topic_frame` does."""
    settings = _prepare_settings(request, kafka)
    with topic_client(request.spark._jvm, settings) as client:  # noqa: SLF001 - the client is one of Java
        state = client.state()
        return TopicLookup(pin=_pin(request, kafka, client=client, state=state), state=state)


def _prepare_settings(request: SourceReadRequest, kafka: Kafka) -> BrokerSettings:
    if getattr(request.spark, "_jsparkSession", None) is None:
        raise request.failed("a topic needs its own Spark (`--master`), and this run uses Spark Connect.")
    settings = BrokerSettings(kafka, directory=request.directory, failed=request.failed)
    add_connector(request.spark, avro=kafka.format is RecordFormat.AVRO)
    return settings


def _pin(request: SourceReadRequest, kafka: Kafka, *, client: TopicClient, state: TopicState) -> TopicOffsets:
    starts = {"earliest": state.earliest, "latest": state.latest}.get(kafka.start)
    if starts is None:
        starts = client.offsets_at(datetime.fromisoformat(kafka.start), state=state)
    schemas: tuple[int, ...] = ()
    if kafka.access.registry is not None:  # after the offsets, so that the schemas of all records are known
        schemas = SchemaRegistry(kafka.access, failed=request.failed).schema_ids(kafka.topic)
    return TopicOffsets(topic=kafka.topic, topic_id=state.topic_id, starts=starts, ends=state.latest, schemas=schemas)


def _schemas(request: SourceReadRequest, kafka: Kafka, *, pin: TopicOffsets) -> Mapping[int, str] | None:
    if kafka.access.registry is None:
        return None
    registry = SchemaRegistry(kafka.access, failed=request.failed)
    numbers = pin.schemas or registry.schema_ids(kafka.topic)
    return {number: registry.schema(number) for number in numbers}


def _require_same_topic(request: SourceReadRequest, pin: TopicOffsets, *, state: TopicState) -> None:
    """Raise SourceFailed if the topic was replaced after the run had pinned it."""
    is_other = pin.topic_id is not None and state.topic_id is not None and pin.topic_id != state.topic_id
    if is_other or len(state.latest) < len(pin.ends):
        raise request.failed(f"the topic {pin.topic} was deleted or created again during the run: start a new run.")


def _refuse_loss(request: SourceReadRequest, read: TopicRead) -> None:
    accept = (
        "write `lost: accept` to continue with those that are there, or run with --full to make the table from them"
    )
    if read.replaced is not None:
        raise request.failed(f"{read.replaced}. Records that were not read are lost: {accept}.")
    if read.lost:
        count = sum(end - start for start, end in read.lost.values())
        raise request.failed(
            f"{count:,} records were removed from topic {read.checkpoint.topic} before they were read"
            f" ({ranges_text(read.lost)}): {accept}."
        )


def _gone_text(request: SourceReadRequest, read: TopicRead) -> str | None:
    """Return what a whole read lacks of the rows that were published or should have been; None if nothing."""
    if read.replaced is not None:
        return f"the records of source {request.source.name} are others ({read.replaced})"
    ranges = {
        number: (read.missing.get(number, lost)[0], lost[1]) for number, lost in {**read.missing, **read.lost}.items()
    }
    if not ranges:
        return None
    return f"records of source {request.source.name} are gone ({ranges_text(ranges)})"


def _records(request: SourceReadRequest, kafka: Kafka, *, settings: BrokerSettings, read: TopicRead) -> DataFrame:
    if not read.ranges:
        return request.spark.createDataFrame([], RECORDS)
    connector_options = {name: value for name, value in kafka.options.items() if name in CONNECTOR_OPTIONS}
    options = {
        **connector_options,
        **{f"kafka.{name}": value for name, value in settings.values.items()},
        "assign": json.dumps({kafka.topic: sorted(read.ranges)}),
        "startingOffsets": json.dumps({kafka.topic: {str(each): start for each, (start, _) in read.ranges.items()}}),
        "endingOffsets": json.dumps({kafka.topic: {str(each): end for each, (_, end) in read.ranges.items()}}),
        "failOnDataLoss": "true" if kafka.lost is LostRecordPolicy.FAIL else "false",
        "kafkaConsumer.pollTimeoutMs": str(kafka.access.timeout_s * 1000),
    }
    try:
        return request.spark.read.format("kafka").options(**options).load().select(*RECORDS.fieldNames())
    except (PySparkException, Py4JJavaError) as error:
        raise settings.refusal(error) from None


def _with_findings(request: SourceReadRequest, kafka: Kafka, *, opened: SourceRead, read: TopicRead) -> SourceRead:
    """Separate the malformed records, and add findings of records that are gone unread."""
    from pyspark.sql import Observation  # noqa: PLC0415
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    parsed, observation = opened.frame, Observation()
    watched = parsed.observe(observation, *counts(parsed))
    rows = malformed_rows(request, kafka.malformed, parsed=parsed, observation=observation)
    lost = _loss_findings(request, read) if request.incremental else ()

    def findings() -> tuple[ExpectationFinding, ...]:
        return (*lost, *rows.findings())

    return replace(
        opened,
        frame=watched.where(F.col(BAD).isNull()).drop(BAD, FILE),
        malformed=MalformedRows(rows=rows.rows, keep=rows.keep, findings=findings),
    )


def _loss_findings(request: SourceReadRequest, read: TopicRead) -> tuple[ExpectationFinding, ...]:
    if not read.lost and read.replaced is None:
        return ()
    rule = Expectation(name=f"{request.source.name} has all records", kind=RuleKind.ROW, action=ExpectationAction.WARN)
    count = sum(end - start for start, end in read.lost.values())
    words = read.replaced or f"{count:,} records were removed before they were read ({ranges_text(read.lost)})"
    return (finding(rule, broken=max(count, 1), checked=max(count, 1) + read.count, what=words),)
