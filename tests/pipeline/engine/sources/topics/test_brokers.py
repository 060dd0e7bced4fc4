# SPDX-License-Identifier: Apache-2.0
"""Access to a real broker: logins, refusals, silence within a bounded time, and passwords that are never exposed."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limnos.pipeline.engine.sources.topics.brokers import BrokerSettings
from limnos.pipeline.engine.sources.values import SourceFailed
from limnos.pipeline.source_declarations import Kafka, KafkaAccess, RecordFormat
from tests.brokers import PASSWORD, USER
from tests.pipeline.engine.sources.topics.conftest import ids

if TYPE_CHECKING:
    from tests.pipeline.engine.sources.topics.conftest import Topic

pytestmark = [
    pytest.mark.spark,
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

VARIABLE = "LIMNOS_TEST_KAFKA_PASSWORD"


def login(topic: Topic, **changes: object) -> KafkaAccess:
    """Return the access of the broker's user."""
    access = KafkaAccess(
        brokers=f"127.0.0.1:{topic.server.login_port}",
        security="sasl_plaintext",
        mechanism="PLAIN",
        user=USER,
        password_env=VARIABLE,
        timeout_s=20,
    )
    return replace(access, **changes)  # type: ignore[arg-type]


def refusal(topic: Topic, access: KafkaAccess, **changes: object) -> str:
    """Return the message of a refused read."""
    with pytest.raises(SourceFailed, match=r"^p\.yaml:4:2: source clicks: ") as refused:
        topic.read(replace(topic.kafka(**changes), access=access))
    return refused.value.message


def test_user_reads_and_password_is_nowhere(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with a password reads a topic; the password is in no plan, no command line and no pin."""
    topic.create()
    topic.produce([{"id": 1}])
    monkeypatch.setenv(VARIABLE, PASSWORD)
    read = topic.read(replace(topic.kafka(), access=login(topic)))
    plan = str(read.frame._jdf.queryExecution().toString())
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]

    assert ids(read) == [1]
    assert "KafkaRelation" in plan
    assert PASSWORD not in plan + str(read.pin)
    assert not any(PASSWORD.encode() in line for line in lines)


def test_refusals_name_the_next_step(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong password, a mechanism that the broker lacks, no topic and an unknown host are errors that say what to
    do, without the password.
    """
    monkeypatch.setenv(VARIABLE, "wr0ng-Secret")
    wrong = refusal(topic, login(topic))
    monkeypatch.setenv(VARIABLE, PASSWORD)
    other = refusal(topic, login(topic, mechanism="SCRAM-SHA-512"))

    assert f"refuse the user {USER}: check `user`, `mechanism` and the variable {VARIABLE}" in wrong
    assert "wr0ng-Secret" not in wrong
    assert "mechanism" in other
    assert f"have no topic {topic.name}: create it" in refusal(topic, login(topic))
    assert "are refused" in refusal(topic, KafkaAccess(brokers="no-such-host.invalid:9092"))
    assert f"{VARIABLE}_2 is not set" in refusal(topic, login(topic, password_env=f"{VARIABLE}_2"))
    assert "there is no file" in refusal(topic, login(topic, ca_file="none.pem"))


def test_silent_broker_is_an_error_within_the_timeout(topic: Topic) -> None:
    """A broker that stops to answer, and one that does not listen, fail the read after the declared time."""
    topic.create()
    bridged = KafkaAccess(brokers=f"127.0.0.1:{topic.server.bridge.port}", timeout_s=4)
    topic.server.bridge.cut()
    try:
        began = time.monotonic()
        message = refusal(topic, bridged)
        seconds = time.monotonic() - began
    finally:
        topic.server.bridge.mend()

    assert "did not answer within 4 seconds: check their addresses and `security`, or raise `timeout`" in message
    assert seconds < 60


def test_login_quotes_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes and backslashes of a password stay in its value, and a line break is refused."""
    access = KafkaAccess(brokers="h:1", user='a"b', password_env=VARIABLE)
    kafka = Kafka(topic="t", access=access, format=RecordFormat.STRING)
    monkeypatch.setenv(VARIABLE, 'x"; y\\')
    settings = BrokerSettings(kafka, directory=None, failed=SourceFailed)

    assert settings.values["sasl.jaas.config"].endswith('username="a\\"b" password="x\\"; y\\\\";')
    assert settings.values["security.protocol"] == "SASL_SSL"
    monkeypatch.setenv(VARIABLE, "a\nb")
    with pytest.raises(SourceFailed, match="control character"):
        BrokerSettings(kafka, directory=None, failed=SourceFailed)
