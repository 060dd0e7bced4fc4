# SPDX-License-Identifier: Apache-2.0
"""Keys of a source that is a topic of Kafka.

Defines its record, and the constraints between its keys. Must not know how a topic is read.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Final

from limnos.pipeline.compound_schemas import ListOf, Record, RecordKey
from limnos.pipeline.keys.shared import ENVIRONMENT, OPTIONS, TEXT, pairs
from limnos.pipeline.node_schemas import Boolean, Choice, NodeSite, Text, Values, WholeNumber
from limnos.pipeline.reader_options import topic_option_problem
from limnos.pipeline.source_declarations import (
    RECORD_COLUMNS,
    Kafka,
    KafkaAccess,
    LostRecordPolicy,
    MalformedRowPolicy,
    RecordFormat,
)

_TOPIC = Text(
    word="a topic's name",
    pattern=r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}",
    rule="a topic's name has letters, digits, '.', '_' and '-'; a source reads one topic",
)
_BROKERS = Text(
    word="the addresses of brokers",
    pattern=r"[^\s,:/@]+:\d{1,5}(\s*,\s*[^\s,:/@]+:\d{1,5})*",
    rule="write host:port, separated by commas: k1.example:9092,k2.example:9092",
)
_COLUMN = Text(
    word="a column of records",
    pattern=rf"({'|'.join(RECORD_COLUMNS)})(\s+[aA][sS]\s+[A-Za-z_][A-Za-z0-9_]*)?",
    rule=f"write {', '.join(RECORD_COLUMNS)}, each alone or with another name: offset as kafka_offset",
)
_REGISTRY = Text(
    word="a registry's URL",
    pattern=r"https?://[^\s/?#@]+(/[^\s?#@]*)?",
    rule="write the URL of a schema registry without user and password: https://registry.example:8081",
)
_START = Text(
    word="a position",
    pattern=r"earliest|latest|\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})",
    rule="write earliest, latest, or a time with its zone in quotes: '2026-11-01T00:00:00Z'",
)
_SECURITY: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def _topic(values: Values, site: NodeSite) -> Kafka:
    kind = RecordFormat(values["format"])
    _check_schema(values, site, kind=kind)
    _check_access(values, site)
    for name, _, at in values.get("options", ()):
        if (problem := topic_option_problem(name, json=kind is RecordFormat.JSON)) is not None:
            site.notes.add(problem, at)
    columns = [re.split(r"\s+as\s+", each, flags=re.IGNORECASE) for each in values.get("columns", ())]
    return Kafka(
        topic=values["kafka"],
        access=_access(values),
        format=kind,
        schema=values.get("schema"),
        columns={words[0]: words[-1] for words in columns},
        is_compacted=values.get("compact", False),
        start=_start(values, site),
        records_max=values.get("records"),
        malformed=MalformedRowPolicy(values.get("malformed", "fail")),
        lost=LostRecordPolicy(values.get("lost", "fail")),
        options=dict(pairs(values.get("options", ()))),
    )


def _access(values: Values) -> KafkaAccess:
    return KafkaAccess(
        brokers=re.sub(r"\s", "", values["brokers"]),
        security=values.get("security"),
        mechanism=values.get("mechanism", "SCRAM-SHA-512"),
        user=values.get("user"),
        password_env=values.get("password_env"),
        ca_file=values.get("ca_file"),
        registry=values.get("registry"),
        registry_user=values.get("registry_user"),
        registry_password_env=values.get("registry_password_env"),
        timeout_s=values.get("timeout", 30),
    )


def _check_schema(values: Values, site: NodeSite, *, kind: RecordFormat) -> None:
    schema = values.get("schema")
    if kind is RecordFormat.JSON and schema is None:
        raise site.bad("'format: json' needs 'schema', the columns of the values: schema: id bigint, name string")
    if kind is RecordFormat.AVRO and schema is None and "registry" not in values:
        raise site.bad("'format: avro' needs 'schema', Avro's JSON of the values, or 'registry', which has it")
    if kind in (RecordFormat.STRING, RecordFormat.BINARY) and schema is not None:
        raise site.bad(f"'format: {kind.value}' has one column 'value': leave 'schema' out, or write 'format: json'")
    if "registry" in values and kind is not RecordFormat.AVRO:
        raise site.bad("'registry' is for 'format: avro': leave it out, or write 'format: avro'")
    if kind is RecordFormat.AVRO and schema is not None:
        try:
            json.loads(schema)
        except ValueError as error:
            raise site.bad(f"'schema' of 'format: avro' is not JSON ({error}): write Avro's schema in JSON") from None


def _check_access(values: Values, site: NodeSite) -> None:
    security = values.get("security")
    if "user" in values and "password_env" not in values:
        raise site.bad("'user' needs 'password_env', the environment variable with the password")
    if "user" in values and security in ("plaintext", "ssl"):
        raise site.bad(f"'security: {security}' has no user: write 'security: sasl_{security}', or leave 'user' out")
    if "user" not in values and security in ("sasl_plaintext", "sasl_ssl"):
        raise site.bad(f"'security: {security}' needs 'user' and 'password_env'")
    if "ca_file" in values and security not in ("ssl", "sasl_ssl") and not (security is None and "user" in values):
        raise site.bad("'ca_file' is for TLS: write 'security: ssl' or 'security: sasl_ssl'")
    if "registry_user" in values and "registry_password_env" not in values:
        raise site.bad("'registry_user' needs 'registry_password_env', the environment variable with the password")


def _start(values: Values, site: NodeSite) -> str:
    start: str = values.get("from", "earliest")
    if start not in ("earliest", "latest"):
        try:
            datetime.fromisoformat(start)
        except ValueError as error:
            raise site.bad(f"'from: {start}' is not a time: {error}") from None
    return start


_NUMBER = WholeNumber(least=1, most=10**15)
_KEYS: Final = {
    "kafka": RecordKey(value_schema=_TOPIC, description="A topic of Kafka.", example="kafka: clicks", required=True),
    "brokers": RecordKey(
        value_schema=_BROKERS,
        description="Addresses of brokers.",
        example="brokers: k1.example:9092,k2.example:9092",
        required=True,
    ),
    "format": RecordKey(
        value_schema=Choice(tuple(one.value for one in RecordFormat)),
        description="Format of the values. `string` and `binary` have one column `value`.",
        example="format: json",
        required=True,
    ),
    "schema": RecordKey(
        value_schema=TEXT,
        description="Of JSON, Spark's list of columns with types. Of Avro, the schema as Avro's JSON.",
        example="schema: id bigint, at timestamp",
    ),
    "columns": RecordKey(
        value_schema=ListOf(_COLUMN, single=True),
        description=(
            "Columns of the record after those of the value: `key`, `topic`, `partition`, `offset`, `timestamp`,"
            " `tombstone` (it has no value)."
        ),
        example="columns: [key, partition as part, offset]",
    ),
    "compact": RecordKey(
        value_schema=Boolean(),
        description="Read only the newest record of each key, for tables with a row per key.",
        example="compact: true",
        default="false",
    ),
    "from": RecordKey(
        value_schema=_START,
        description="Where the first read begins: earliest, latest, or a time with its zone.",
        example="from: '2026-11-01T00:00:00Z'",
        default="earliest",
    ),
    "records": RecordKey(
        value_schema=_NUMBER,
        description="At most so many new records in a run, shared among the partitions by what they have.",
        example="records: 1000000",
    ),
    "malformed": RecordKey(
        value_schema=Choice(tuple(one.value for one in MalformedRowPolicy)),
        description=(
            "Treatment of records that do not match the schema: the run fails, they are kept in `<table>__malformed`,"
            " or counted and left out."
        ),
        example="malformed: keep",
        default="fail",
    ),
    "lost": RecordKey(
        value_schema=Choice(tuple(one.value for one in LostRecordPolicy)),
        description=(
            "Treatment of records that were removed before they were read: the run fails, or accepts it with a warning."
        ),
        example="lost: accept",
        default="fail",
    ),
    "security": RecordKey(
        value_schema=Choice(_SECURITY),
        description="Protocol to the brokers. The default is `plaintext`, with `user` it is `sasl_ssl`.",
        example="security: sasl_ssl",
    ),
    "mechanism": RecordKey(
        value_schema=Choice(_MECHANISMS),
        description="Mechanism of the login.",
        example="mechanism: PLAIN",
        default="SCRAM-SHA-512",
    ),
    "user": RecordKey(value_schema=TEXT, description="User at the brokers.", example="user: reader"),
    "password_env": RecordKey(
        value_schema=ENVIRONMENT,
        description="Environment variable with the user's password.",
        example="password_env: KAFKA_PASSWORD",
    ),
    "ca_file": RecordKey(
        value_schema=TEXT,
        description="PEM file with certificate authorities, relative to the pipeline's file.",
        example="ca_file: kafka-ca.pem",
    ),
    "registry": RecordKey(
        value_schema=_REGISTRY,
        description=(
            "Schema registry of Avro values in Confluent's wire format; without `schema` the newest schema is read."
        ),
        example="registry: https://registry.example:8081",
    ),
    "registry_user": RecordKey(value_schema=TEXT, description="User at the registry.", example="registry_user: reader"),
    "registry_password_env": RecordKey(
        value_schema=ENVIRONMENT,
        description="Environment variable with the password at the registry.",
        example="registry_password_env: REGISTRY_PASSWORD",
    ),
    "timeout": RecordKey(
        value_schema=WholeNumber(least=1, most=3600),
        description="Longest wait for an answer of a broker or the registry, in seconds.",
        example="timeout: 60",
        default="30",
    ),
    "options": RecordKey(
        value_schema=OPTIONS,
        description="Options of Spark's connector and of Kafka's consumer, and of Spark's reader of JSON.",
        example="options: {minPartitions: 8, timestampFormat: dd.MM.yyyy}",
    ),
}


def topic_record(comment: RecordKey) -> Record:
    """Return the record of a source that is a topic. `comment` is the key that all sources have."""
    return Record(
        name="a source that is a topic",
        together={"mechanism": "user", "password_env": "user", "registry_user": "registry"},
        keys={**_KEYS, "comment": comment},
        build=_topic,
    )
