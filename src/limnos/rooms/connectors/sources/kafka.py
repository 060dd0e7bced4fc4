# SPDX-License-Identifier: Apache-2.0
"""A Kafka cluster as a catalog: one schema, `default`, whose topics are read and changed through Kafka's admin API.

Must not know callers. Each call has its own deadline. Brokers advertise one another's addresses: before each call it
checks that the server may connect to all of them. Kafka has no comments.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import chain, repeat
from threading import Lock
from typing import Final, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import BadRequest, NotFound, SourceFailed, UnsupportedOperation
from limnos.names.path import Levels
from limnos.rooms.connectors.sources.kafka_errors import NOT_IN, translate_kafka_errors
from limnos.rooms.connectors.sources.kafka_settings import KafkaSettings
from limnos.sources.connectors.addresses import address_of
from limnos.sources.connectors.capabilities import SourceSchemaInfo, SourceTopicInfo

T = TypeVar("T")
SCHEMA: Final = "default"
PARTITIONS: Final = "partition-count"
REPLICATION: Final = "replication-factor"
PARTITIONS_MAX: Final = 100_000
_INTERNAL: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "__remote_log_metadata"}
)
"""Kafka's internal topics."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PAUSES_S: Final = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
"""The pauses in seconds between checks whether all brokers report a change.

The controller applies a change immediately, and the brokers a moment later. A call waits for them, so that its caller
sees the change.
"""


class KafkaSource:
    """A connector for a Kafka cluster, over the admin client of confluent-kafka."""

    def __init__(self, settings: KafkaSettings, *, allowed: Collection[str], timeout_s: float) -> None:
        self._settings = settings
        self._allowed = allowed
        self._late_s = timeout_s * 0.8
        self._lock = Lock()
        self._client: AdminClient | None = None
        self._last_error: KafkaError | None = None
        """The library's last error, since an exceeded deadline has no cause."""

    def check(self) -> None:
        """Request the list of brokers, which shows that the login works and all brokers are allowed."""
        with self._open_call("the cluster"):
            pass

    def close(self) -> None:
        """Release the admin client. The library closes it after the last call that uses it."""
        with self._lock:
            self._client = None

    # -- the schema ------------------------------------------------------------------------------------------------

    def schema_names(self, parent: Levels) -> list[str]:
        """Return `default`, the only schema, after a check that the cluster responds. Raises UnsupportedOperation for a
        `parent`.
        """
        if parent:
            raise UnsupportedOperation("Schemas of this source do not nest")
        self.check()
        return [SCHEMA]

    def schema_exists(self, schema: Levels) -> bool:
        """Return whether the name is `default`, the only schema, after a check that the cluster responds."""
        self.check()
        return schema == (SCHEMA,)

    def schema_load(self, schema: Levels) -> SourceSchemaInfo:
        """Return `default`, the only schema of a Kafka cluster. Raises NotFound for another name."""
        self.check()
        _require_schema(".".join(schema))
        return SourceSchemaInfo("The topics of the cluster", {})

    def schema_create(self, schema: Levels, *, comment: str | None, properties: dict[str, str]) -> None:
        """Raise UnsupportedOperation: `default` is a cluster's only schema."""
        raise UnsupportedOperation(f"A Kafka cluster has only the schema {SCHEMA}: create topics in it")

    def schema_alter(self, schema: Levels, *, sets: dict[str, str], removes: Sequence[str]) -> None:
        """Raise UnsupportedOperation, because the schema `default` has no properties, or NotFound for another name."""
        _require_schema(".".join(schema))
        raise UnsupportedOperation("Schemas of this source cannot be changed")

    def schema_drop(self, schema: Levels) -> None:
        """Raise UnsupportedOperation, because the schema `default` represents the whole cluster, or NotFound for
        another name.
        """
        _require_schema(".".join(schema))
        raise UnsupportedOperation(
            f"Schema {SCHEMA} represents the whole cluster and cannot be dropped: drop its topics"
        )

    # -- topics ----------------------------------------------------------------------------------------------------

    def topic_names(self, schema: str) -> list[str]:
        """Return the names of all topics except Kafka's internal ones, sorted. Raises NotFound for a schema other than
        `default`.
        """
        _require_schema(schema)
        with self._open_call("the cluster") as call:
            metadatas = call.client.list_topics(timeout=call.left_s()).topics
        return sorted(name for name in metadatas if name not in _INTERNAL)

    def topic_exists(self, schema: str, topic: str) -> bool:
        """Return whether the cluster has a topic; False in a schema other than `default`."""
        if schema != SCHEMA:
            return False
        with self._open_call(_about(topic)) as call:
            return call.has(topic)

    def topic_load(self, schema: str, topic: str) -> SourceTopicInfo:
        """Return a topic's configuration, partition count and replication factor, without secret settings. Raises
        NotFound.
        """
        _require_schema(schema)
        with self._open_call(_about(topic)) as call:
            description, entries = call.topic(topic), call.settings(topic)
        properties = {
            name: each.value for name, each in entries.items() if each.value is not None and not each.is_sensitive
        }
        copies = max((len(each.replicas) for each in description.partitions), default=0)
        return SourceTopicInfo({**properties, PARTITIONS: str(len(description.partitions)), REPLICATION: str(copies)})

    def topic_create(self, schema: str, topic: str, *, properties: Mapping[str, str]) -> None:
        """Create a topic, and wait until the brokers report it. Missing settings get the cluster's defaults."""
        _require_schema(schema)
        topic_config = {name: value for name, value in properties.items() if name not in (PARTITIONS, REPLICATION)}
        partitions, copies = (_positive_integer(properties, name) for name in (PARTITIONS, REPLICATION))
        with self._open_call(_about(topic), changes=True) as call:
            new = NewTopic(topic, num_partitions=partitions or -1, replication_factor=copies or -1, config=topic_config)
            call.answer(call.client.create_topics([new], request_timeout=call.left_s())[topic])
            call.wait_until(lambda: call.has(topic))

    def topic_alter(self, schema: str, topic: str, *, sets: Mapping[str, str], removes: Sequence[str]) -> None:
        """Change settings and add partitions. The cluster first validates all of the changes."""
        _require_schema(schema)
        _refuse_fixed(sets, removes)
        requested = _positive_integer(sets, PARTITIONS)
        entries = _entries(sets, removes)
        with self._open_call(_about(topic), changes=True) as call:
            number = len(call.topic(topic).partitions)
            for tries in (True, False):
                if entries:
                    call.set(topic, entries, tries=tries)
                if requested is not None and requested != number:
                    call.add_partitions(topic, requested, tries=tries)
            call.wait_until(lambda: call.is_applied(topic, sets=sets, removes=removes, partitions=requested or number))

    def topic_drop(self, schema: str, topic: str) -> None:
        """Drop a topic with its messages, and wait until the brokers no longer report it. Raises NotFound."""
        _require_schema(schema)
        with self._open_call(_about(topic), changes=True) as call:
            call.topic(topic)
            call.answer(call.client.delete_topics([topic], request_timeout=call.left_s())[topic])
            call.wait_until(lambda: not call.has(topic))

    # -- the client ------------------------------------------------------------------------------------------------

    @contextmanager
    def _open_call(self, about: str, *, changes: bool = False) -> Iterator[_KafkaCall]:
        """Yield the client for one call, after checking the brokers' addresses."""
        self._last_error = None
        question = _KafkaCall(self._client_of_source(), time.monotonic() + self._late_s, self._complaint)
        with translate_kafka_errors(about, reason=self._complaint):
            self._require_brokers(question)
        with translate_kafka_errors(about, changes=changes, reason=self._complaint):
            yield question

    def _client_of_source(self) -> AdminClient:
        with self._lock:
            if self._client is None:
                settings: dict[str, object] = {
                    "client.id": "limnos",
                    **self._settings.security,
                    "bootstrap.servers": ",".join(str(each) for each in self._settings.servers),
                    "socket.connection.setup.timeout.ms": max(1000, int(self._late_s * 500)),
                    "reconnect.backoff.max.ms": 1000,
                    "log_level": 0,  # no lines on standard error: errors go to error_cb
                    "error_cb": self._hear,
                }
                self._client = AdminClient(settings)  # type: ignore[arg-type] # callbacks are settings too
            return self._client

    def _hear(self, error: KafkaError) -> None:
        self._last_error = error

    def _complaint(self) -> KafkaError | None:
        return self._last_error

    def _require_brokers(self, question: _KafkaCall) -> None:
        answer = question.answer(question.client.describe_cluster(request_timeout=question.left_s()))
        for node in answer.nodes:
            if str(address_of(node.host, node.port, label="A broker")) not in self._allowed:
                raise SourceFailed(
                    "A broker of the source advertises an address to which this server does not connect: ask the"
                    " server's operator",
                    detail=f"{node.host}:{node.port} is not in sources.allowed_addresses",
                )


class _KafkaCall(NamedTuple):
    """One call to a cluster, which reads or changes topics until a deadline.

    `ends` is the deadline as a time of `time.monotonic`. `complaint` returns the client's last error, or None.
    """

    client: AdminClient
    ends: float
    complaint: Callable[[], KafkaError | None]

    def left_s(self) -> float:
        """Return the remaining time in seconds, at least 0.05."""
        return max(0.05, self.ends - time.monotonic())

    def answer(self, future: Future[T]) -> T:
        """Return the result of a future of the library. Raises KafkaException, or TimeoutError after the deadline.

        The library repeats a failed login until the deadline. This method stops at the first failed login.
        """
        late = self.ends + 1.0  # one second after the library's own deadline, whose error is more precise
        while True:
            try:
                return future.result(0.1)
            except TimeoutError:
                self.client.poll(0)
                error = self.complaint()
                if error is not None and error.code() in NOT_IN:
                    raise KafkaException(error) from None
                if time.monotonic() > late:
                    raise

    def topic(self, topic: str) -> TopicDescription:
        """Return a topic's description. Raises KafkaException, NotFound for an internal or invalid name.

        Invalid names are not sent: the library truncates a name at its first NUL byte, and would describe another
        topic.
        """
        if _NAME.fullmatch(topic) is None:
            raise NotFound(f"{_about(topic)} does not exist in the source", kind="topic")
        tasks = self.client.describe_topics(TopicCollection([topic]), request_timeout=self.left_s())
        description: TopicDescription = self.answer(tasks[topic])
        if description.is_internal or topic in _INTERNAL:
            raise NotFound(f"{_about(topic)} is an internal topic of Kafka, which is not served", kind="topic")
        return description

    def has(self, topic: str) -> bool:
        """Return whether a topic exists; False for an internal topic."""
        try:
            self.topic(topic)
        except NotFound:
            return False
        except KafkaException as error:
            if error.args[0].code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION):
                return False
            raise
        return True

    def settings(self, topic: str) -> dict[str, ConfigEntry]:
        """Fetch the configuration entries of a topic from the broker, by name."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        tasks = self.client.describe_configs([resource], request_timeout=self.left_s())
        entries: dict[str, ConfigEntry] = self.answer(tasks[resource])
        return entries

    def set(self, topic: str, entries: list[ConfigEntry], *, tries: bool) -> None:
        """Change settings; with `tries` only validate the change."""
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        tasks = self.client.incremental_alter_configs([resource], validate_only=tries, request_timeout=self.left_s())
        self.answer(tasks[resource])

    def add_partitions(self, topic: str, partitions: int, *, tries: bool) -> None:
        """Add partitions; with `tries` only validate the change."""
        new = NewPartitions(topic, partitions)
        tasks = self.client.create_partitions([new], validate_only=tries, request_timeout=self.left_s())
        self.answer(tasks[topic])

    def is_applied(self, topic: str, *, sets: Mapping[str, str], removes: Sequence[str], partitions: int) -> bool:
        """Return whether the brokers already report a topic's new settings and number of partitions."""
        entries, own = self.settings(topic), ConfigSource.DYNAMIC_TOPIC_CONFIG
        is_changed = all(name == PARTITIONS or (name in entries and entries[name].value == sets[name]) for name in sets)
        is_deleted = all(
            name in sets or name not in entries or ConfigSource(entries[name].source) != own for name in removes
        )
        return is_changed and is_deleted and len(self.topic(topic).partitions) == partitions

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Poll until `condition` is true: the brokers report the change. Returns without an error at the deadline."""
        for pause_s in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
            time.sleep(pause_s)
            try:
                if condition():
                    return
            except (KafkaException, TimeoutError):  # the change is made even if reading it back fails
                return
            if time.monotonic() >= self.ends:
                return


def _about(topic: str) -> str:
    return f"Topic {preview_value(topic)}"


def _require_schema(schema: str) -> None:
    if schema != SCHEMA:
        raise NotFound(
            f"Schema {preview_value(schema)} does not exist in the source: a cluster has {SCHEMA}", kind="namespace"
        )


def _positive_integer(properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 0 < int(text) <= PARTITIONS_MAX):
        raise BadRequest(f"Property {name} must be a whole number from 1 to {PARTITIONS_MAX}")
    return int(text)


def _refuse_fixed(sets: Mapping[str, str], removes: Sequence[str]) -> None:
    if REPLICATION in sets:
        raise BadRequest(
            f"Property {REPLICATION} can only be set when a topic is created: move replicas with Kafka's own tools"
        )
    for name in (PARTITIONS, REPLICATION):
        if name in removes and name not in sets:
            raise BadRequest(f"Property {name} cannot be removed: every topic has it")


def _entries(sets: Mapping[str, str], removes: Sequence[str]) -> list[ConfigEntry]:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in sets.items()
        if name != PARTITIONS
    ]
    names = [name for name in dict.fromkeys(removes) if name not in sets]
    return [*entries, *(ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE) for name in names)]
