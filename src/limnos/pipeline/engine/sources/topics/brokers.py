# SPDX-License-Identifier: Apache-2.0
"""Brokers of Kafka: the settings of a client, and the offsets of a topic, each within a bounded time.

Uses the Java client that Spark's connector brings, so that both have the same settings. Must not know pipelines' runs.
Passwords are in the client's settings only; messages mask them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from limnos.pipeline.topic_offsets import TopicState

if TYPE_CHECKING:
    from limnos.pipeline.engine.sources.values import SourceFailed
    from limnos.pipeline.source_declarations import Kafka, KafkaAccess

Java = Any
_LOGINS = {"PLAIN": "plain.PlainLoginModule"}
_SCRAM = "scram.ScramLoginModule"
_TIME_LATEST = -1
_CLIENT = "limnos"


class BrokerSettings:
    """The settings of a client of the brokers, and the passwords to mask in messages.

    Raises the error of `failed` if an environment variable is not set or a value cannot be passed on.
    """

    def __init__(self, kafka: Kafka, *, directory: Path | None, failed: Callable[[str], SourceFailed]) -> None:
        access = kafka.access
        self.failed = failed
        self.access = access
        self.topic = kafka.topic
        password = secret(access.password_env, failed)
        self._secrets = [each for each in (password,) if each]
        client_options = {
            name.removeprefix("kafka."): value for name, value in kafka.options.items() if name.startswith("kafka.")
        }
        timeout_ms = str(access.timeout_s * 1000)
        self.values: dict[str, str] = {
            **client_options,
            "bootstrap.servers": access.brokers,
            "security.protocol": _protocol(access),
            "request.timeout.ms": timeout_ms,
            "default.api.timeout.ms": timeout_ms,
            "isolation.level": "read_committed",
        }
        if access.user is not None:
            module = _LOGINS.get(access.mechanism, _SCRAM)
            words = f"username={_quote_value(access.user, failed)} password={_quote_value(password or '', failed)}"
            self.values["sasl.mechanism"] = access.mechanism
            self.values["sasl.jaas.config"] = f"org.apache.kafka.common.security.{module} required {words};"
        if access.ca_file is not None:
            self.values["ssl.truststore.type"] = "PEM"
            self.values["ssl.truststore.location"] = _existing(access.ca_file, directory=directory, failed=failed)

    def mask(self, text: str) -> str:
        """Return the text with passwords masked."""
        for each in self._secrets:
            text = text.replace(each, "***")
        return text

    def refusal(self, error: Exception) -> SourceFailed:
        """Return the error for the caller: what the brokers refused, and what to do."""
        name, text = _cause(error)
        access = self.access
        brokers = f"the brokers {access.brokers}"
        reasons = {
            "UnknownTopicOrPartitionException": f"{brokers} have no topic {self.topic}: create it, or correct `kafka`.",
            "InvalidTopicException": f"{self.topic!r} is not a topic's name: correct `kafka`.",
            "TopicAuthorizationException": (
                f"{self._user_text()} may not read the topic {self.topic}: grant the rights to describe and to read it."
            ),
            "GroupAuthorizationException": (
                f"{self._user_text()} may not use the consumer group: grant the right to read it, or set the option"
                " `groupIdPrefix` to a prefix that is allowed."
            ),
            "ClusterAuthorizationException": f"{self._user_text()} may not use {brokers}: grant the right.",
            "SaslAuthenticationException": (
                f"{brokers} refuse {self._user_text()}: check `user`, `mechanism` and the variable"
                f" {access.password_env}."
            ),
            "UnsupportedSaslMechanismException": (
                f"{brokers} have no mechanism {access.mechanism}: correct `mechanism`."
            ),
            "SslAuthenticationException": (
                f"the certificate of {brokers} is not trusted: name its authority in `ca_file`."
            ),
            "TimeoutException": (
                f"{brokers} did not answer within {access.timeout_s} seconds: check their addresses and `security`, or"
                " raise `timeout`."
            ),
            "ConfigException": f"the settings for {brokers} are refused: {text}",
        }
        return self.failed(self.mask(reasons.get(name, f"{brokers} cannot be read: {name}: {text}")))

    def _user_text(self) -> str:
        return "a client without a user" if self.access.user is None else f"the user {self.access.user}"


def secret(variable: str | None, failed: Callable[[str], SourceFailed]) -> str | None:
    """Return the value of an environment variable; None without a variable. Raises the error if it is not set."""
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise failed(f"the environment variable {variable} is not set: put the password there.")
    return os.environ[variable]


def _protocol(access: KafkaAccess) -> str:
    default = "plaintext" if access.user is None else "sasl_ssl"
    return (access.security or default).upper()


def _quote_value(text: str, failed: Callable[[str], SourceFailed]) -> str:
    """Quote a value of a login. Raises the error for a control character, which would end it."""
    if re.search(r"[\x00-\x1f]", text):
        raise failed("its user or password has a control character, which Kafka does not take.")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _existing(path: str, *, directory: Path | None, failed: Callable[[str], SourceFailed]) -> str:
    place = (directory or Path()) / path
    if not place.is_file():
        raise failed(f"there is no file {place}: correct `ca_file`.")
    return str(place.absolute())


def _cause(error: Exception) -> tuple[str, str]:
    """Return the class and the first line of the innermost Java error."""
    if not isinstance(error, Py4JJavaError):
        origin = getattr(error, "_origin", None)
        if origin is None:
            return type(error).__name__, str(error).partition("\n")[0]
        cause = origin
    else:
        cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    text = str(cause.getMessage() or "no reason was given")
    return str(cause.getClass().getSimpleName()), text.partition("\n")[0]


class TopicClient:
    """A client of the brokers that reads the offsets of one topic. Methods raise SourceFailed."""

    def __init__(self, machine: Java, admin: Java, *, settings: BrokerSettings) -> None:
        self._machine = machine
        self._admin = admin
        self._settings = settings
        self._classes = machine.org.apache.kafka

    def state(self) -> TopicState:
        """Return the topic's id, and the first and next offsets of its partitions."""
        with self._errors():
            names = self._machine.java.util.List.of(self._settings.topic)
            described = self._admin.describeTopics(names).allTopicNames().get().get(self._settings.topic)
            count = int(described.partitions().size())
            topic_id = str(described.topicId().toString())
            specs = self._classes.clients.admin.OffsetSpec
            return TopicState(
                topic_id=None if topic_id == str(self._classes.common.Uuid.ZERO_UUID.toString()) else topic_id,
                earliest=self._offsets(count, specs.earliest()),
                latest=self._offsets(count, specs.latest()),
            )

    def offsets_at(self, moment: datetime, *, state: TopicState) -> tuple[int, ...]:
        """Return the first offsets whose records are not older than a time; the next offset where there is none."""
        with self._errors():
            spec = self._classes.clients.admin.OffsetSpec.forTimestamp(int(moment.timestamp() * 1000))
            results = self._offsets(len(state.latest), spec)
        return tuple(
            latest if offset == _TIME_LATEST else offset for offset, latest in zip(results, state.latest, strict=True)
        )

    def _offsets(self, count: int, spec: Java) -> tuple[int, ...]:
        partition, requests = self._classes.common.TopicPartition, self._machine.java.util.HashMap()
        partitions = [partition(self._settings.topic, number) for number in range(count)]
        for each in partitions:
            requests.put(each, spec)
        committed = self._classes.common.IsolationLevel.READ_COMMITTED
        options = self._classes.clients.admin.ListOffsetsOptions(committed)
        result = self._admin.listOffsets(requests, options)
        return tuple(int(result.partitionResult(each).get().offset()) for each in partitions)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            raise self._settings.refusal(error) from None


@contextmanager
def topic_client(machine: Java, settings: BrokerSettings) -> Iterator[TopicClient]:
    """Open a client for the body of a `with`. `machine` has Kafka's client on its class path. Raises SourceFailed."""
    properties = machine.java.util.HashMap()
    for name, value in admin_settings(settings.values).items():
        properties.put(name, value)
    try:
        admin = machine.org.apache.kafka.clients.admin.AdminClient.create(properties)
    except Py4JJavaError as error:
        raise settings.refusal(error) from None
    try:
        yield TopicClient(machine, admin, settings=settings)
    finally:
        admin.close(machine.java.time.Duration.ofSeconds(1))


def admin_settings(values: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a client for offsets knows: those of consumers are left out."""
    prefixes: Sequence[str] = ("bootstrap.", "security.", "sasl.", "ssl.", "request.timeout", "default.api.timeout")
    return {name: value for name, value in values.items() if name.startswith(tuple(prefixes))} | {"client.id": _CLIENT}
