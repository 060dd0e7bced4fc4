# SPDX-License-Identifier: Apache-2.0
"""Translates a catalog's properties to settings of the Kafka client library: brokers, TLS and login.

Pure. Properties are Gravitino's: `bootstrap.servers`, and Kafka's own names behind `gravitino.bypass.`. Only the names
below are accepted: other settings of the library read files of this machine, load code, or send data elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from limnos.model.errors import BadRequest
from limnos.sources.connectors.addresses import SourceAddress, address_of, require_allowed

SERVERS: Final = "bootstrap.servers"
BYPASS: Final = "gravitino.bypass."
SERVERS_MAX: Final = 16
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_LOGIN: Final = re.compile(r'[\w.]+LoginModule\s+required\s+(?P<options>(?:\w+\s*=\s*"(?:[^"\\]|\\.)*"\s*)+);')
_OPTION: Final = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_OF_KAFKA: Final[Mapping[str, str]] = {
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.username": "sasl.username",
    "sasl.password": "sasl.password",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
    "client.id": "client.id",
}
"""Kafka's names of settings, with the library's.

`sasl.jaas.config` is parsed separately: Java's clients have a user and a password in it.
"""
_JAAS: Final = "sasl.jaas.config"


class KafkaSettings(NamedTuple):
    """The bootstrap servers, and the security settings of the library."""

    servers: tuple[SourceAddress, ...]
    security: dict[str, str]


def kafka_settings(properties: Mapping[str, str], *, allowed: Collection[str]) -> KafkaSettings:
    """Convert a catalog's properties to Kafka client settings.

    Raises BadRequest for malformed or missing brokers, a broker outside `allowed`, and a `bypass` property that is not
    supported or has an invalid value.
    """
    servers = _servers(properties.get(SERVERS) or "")
    for server in servers:
        require_allowed(server, allowed, label=f"Property {SERVERS}")
    passed = {key.removeprefix(BYPASS): value for key, value in properties.items() if key.startswith(BYPASS)}
    for name, value in passed.items():
        if name != _JAAS and name not in _OF_KAFKA:
            raise BadRequest(
                f"Property {BYPASS}{name} is not supported: supported are {', '.join(sorted((*_OF_KAFKA, _JAAS)))}"
            )
        if "\0" in value:
            raise BadRequest(f"Property {BYPASS}{name} contains a zero byte")
    results = {_OF_KAFKA[name]: value for name, value in passed.items() if name != _JAAS}
    if _JAAS in passed:
        results.update(_login(passed[_JAAS]))
    return KafkaSettings(servers, _check_protocol(results))


def _servers(text: str) -> tuple[SourceAddress, ...]:
    names = [each.strip() for each in text.split(",") if each.strip()]
    if not 0 < len(names) <= SERVERS_MAX:
        raise BadRequest(
            f"Property {SERVERS} is missing: give HOST:PORT of one to {SERVERS_MAX} brokers, separated by commas"
        )
    return tuple(_address(each) for each in names)


def _address(text: str) -> SourceAddress:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise BadRequest(f"Property {SERVERS} must be HOST:PORT of brokers, separated by commas")
    return address_of(host.removeprefix("[").removesuffix("]") or None, int(port), label=f"Property {SERVERS}")


def _login(text: str) -> dict[str, str]:
    """Return the user and password in the value of a Java client's `sasl.jaas.config`. Raises BadRequest for another
    login module or a malformed text.
    """
    line = _LOGIN.fullmatch(text.strip())
    options = dict(_OPTION.findall(line["options"])) if line is not None else {}
    if not {"username", "password"} <= set(options):
        raise BadRequest(
            f"Property {BYPASS}{_JAAS} must be one login module with a user and a password: ….PlainLoginModule required"
            ' username="…" password="…";'
        )
    return {f"sasl.{name}": re.sub(r"\\(.)", r"\1", options[name]) for name in ("username", "password")}


def _check_protocol(results: dict[str, str]) -> dict[str, str]:
    protocol = results.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise BadRequest(f"Property {BYPASS}security.protocol must be one of {', '.join(_PROTOCOLS)}")
    if protocol.startswith("SASL"):
        _require_login(results)
    elif any(name.startswith("sasl.") for name in results):
        raise BadRequest(f"A user is set, but {BYPASS}security.protocol is {protocol}: set SASL_SSL or SASL_PLAINTEXT")
    if results.get("ssl.endpoint.identification.algorithm", "https") not in ("https", ""):
        raise BadRequest(f"Property {BYPASS}ssl.endpoint.identification.algorithm must be https, or empty for none")
    if results.get("ssl.endpoint.identification.algorithm") == "":
        results = {**results, "ssl.endpoint.identification.algorithm": "none"}
    return {**results, "security.protocol": protocol}


def _require_login(results: Mapping[str, str]) -> None:
    if results.get("sasl.mechanism") not in _MECHANISMS:
        raise BadRequest(f"Property {BYPASS}sasl.mechanism must be one of {', '.join(_MECHANISMS)}")
    if not results.get("sasl.username") or not results.get("sasl.password"):
        raise BadRequest(f"Property {BYPASS}{_JAAS} is missing: it names the user and the password for SASL")
