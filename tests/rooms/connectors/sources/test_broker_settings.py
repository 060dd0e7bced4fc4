# SPDX-License-Identifier: Apache-2.0
"""Settings of a Kafka cluster: allowed and refused properties of a catalog."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest
from limnos.rooms.connectors.sources.kafka_settings import kafka_settings

ALLOWED = ("a.example.com:9092", "b.example.com:9093", "[::1]:9092")
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p\\"w\\\\d";'
SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": JAAS}


def _properties(servers: str = "A.example.com:9092", **passed: str) -> dict[str, str]:
    return {"bootstrap.servers": servers, **{f"gravitino.bypass.{name}": value for name, value in passed.items()}}


def test_broker_lists_are_parsed() -> None:
    """One or several brokers are parsed, with spaces and IPv6 in brackets; the default security protocol is plain
    text.
    """
    settings = kafka_settings(_properties(" A.example.com:9092, b.example.com:9093,[::1]:9092 "), allowed=ALLOWED)

    assert [str(each) for each in settings.servers] == list(ALLOWED)
    assert settings.security == {"security.protocol": "PLAINTEXT"}


def test_java_and_librdkafka_logins_are_parsed() -> None:
    """User and password are parsed from Java's login line, with its escapes, or from librdkafka's own properties."""
    login = kafka_settings(_properties(**SASL), allowed=ALLOWED).security
    plain = kafka_settings(
        _properties(**SASL | {"sasl.jaas.config": JAAS, "sasl.username": "x", "client.id": "me"}), allowed=ALLOWED
    ).security

    assert login == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": 'p"w\\d',
    }
    assert plain == {**login, "client.id": "me"}


def test_inline_certificates_are_accepted() -> None:
    """Certificates are given inline in the property; skipping the host name check must be stated."""
    passed = {
        "security.protocol": "ssl",
        "ssl.truststore.certificates": "-----BEGIN…",
        "ssl.endpoint.identification.algorithm": "",
    }

    assert kafka_settings(_properties(**passed), allowed=ALLOWED).security == {
        "security.protocol": "SSL",
        "ssl.ca.pem": "-----BEGIN…",
        "ssl.endpoint.identification.algorithm": "none",
    }


@pytest.mark.parametrize(
    "servers",
    [
        "",
        " , ",
        "a.example.com",
        "a.example.com:",
        "a.example.com:x",
        "a.example.com:99999",
        "a.example.com:9092/x",
        ":9092",
        "PLAINTEXT://a.example.com:9092",
        "u@a.example.com:9092",
        "a.example.com:9092," * 17,
        "a.example.com:٩٠٩٢",
    ],
)
def test_wrong_brokers_are_refused(servers: str) -> None:
    """The error for invalid brokers names the property."""
    with pytest.raises(BadRequest, match=r"bootstrap\.servers"):
        kafka_settings(_properties(servers), allowed=ALLOWED)


def test_every_broker_has_to_be_allowed() -> None:
    """A broker that is not allowed is refused with the flag that would allow it."""
    with pytest.raises(BadRequest, match=r"--allow-source c\.example\.com:9092"):
        kafka_settings(_properties("a.example.com:9092,c.example.com:9092"), allowed=ALLOWED)


@pytest.mark.parametrize(
    "passed, words",
    [
        ({"ssl.keystore.location": "/etc/passwd"}, r"ssl\.keystore\.location is not supported"),
        ({"plugin.library.paths": "/tmp/x.so"}, "is not supported"),
        ({"sasl.oauthbearer.token.endpoint.url": "http://x"}, "is not supported"),
        ({"security.protocol": "TLS"}, "must be one of PLAINTEXT"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism must be one of"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "sasl.mechanism must be one of"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, r"jaas\.config is missing"),
        ({**SASL, "sasl.jaas.config": "com.evil.Module required;"}, "one login module"),
        ({**SASL, "sasl.jaas.config": f"{JAAS} {JAAS}"}, "one login module"),
        ({"sasl.username": "u", "sasl.password": "p"}, "a user is set"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldap"}, "https, or empty"),
        ({"client.id": "a\0b"}, "zero byte"),
    ],
)
def test_unsafe_or_incomplete_properties_are_refused(passed: dict[str, str], words: str) -> None:
    """Properties that read files, load code, or are incomplete are refused."""
    with pytest.raises(BadRequest, match=f"(?i){words}"):
        kafka_settings(_properties(**passed), allowed=ALLOWED)
