# SPDX-License-Identifier: Apache-2.0
"""The connector of a provider: properties without a source, and extras that are not installed."""

from __future__ import annotations

import re
import sys

import pytest

from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.rooms.connectors.sources.registry import check_source, open_source
from limnos.sources.connectors.opening import SourceLimits

LIMITS = SourceLimits(
    ("a.example.com:9083", "b.example.com:9084", "a.example.com:9092", "a.example.com:3306"), timeout_s=1.0
)
HIVE = {"metastore.uris": "thrift://a.example.com, thrift://B.example.com:9084/"}
MYSQL = {"jdbc-url": "jdbc:mysql://a.example.com", "jdbc-user": "u", "jdbc-password": "p"}
KAFKA = {"bootstrap.servers": "a.example.com:9092"}


@pytest.mark.parametrize(
    "provider, properties, library",
    [
        ("kafka", KAFKA, "confluent_kafka"),
        ("hive", HIVE, "hive_metastore.ThriftHiveMetastore"),
        ("jdbc-mysql", MYSQL, "pymysql.connections"),
    ],
)
def test_missing_connector_package_is_named(
    provider: str, properties: dict[str, str], library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog can be created; requests to its source name the package to install."""
    module, extra = {"kafka": ("kafka", "kafka"), "hive": ("metastore", "hive"), "jdbc-mysql": ("mysql", "mysql")}[
        provider
    ]
    monkeypatch.delitem(sys.modules, f"limnos.rooms.connectors.sources.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)

    check_source(provider, properties, limits=LIMITS)
    with pytest.raises(UnsupportedOperation, match=rf"pip install -e '\.\[{extra}\]'"):
        open_source(provider, properties, limits=LIMITS)


def test_opening_does_not_connect() -> None:
    """Opening a connector sends nothing, and closing it releases everything."""
    for provider, properties in (("kafka", KAFKA), ("hive", HIVE), ("jdbc-mysql", MYSQL)):
        open_source(provider, properties, limits=LIMITS).close()


@pytest.mark.parametrize(
    "more, words",
    [
        ({"jdbc-url": "jdbc:mysql://b.example.com"}, "--allow-source b.example.com:3306"),
        ({"jdbc-url": "jdbc:postgresql://a.example.com"}, "jdbc:mysql://HOST"),
        ({"jdbc-url": "jdbc:mysql://a.example.com/shop"}, "must not name a database"),
        ({"jdbc-database": "shop"}, "must not name a database"),
        ({"jdbc-url": "jdbc:mysql://a.example.com?sslMode=VERIFY_CA"}, "DISABLED, PREFERRED, REQUIRED"),
        ({"jdbc-url": "jdbc:mysql://a.example.com?autoDeserialize=true"}, "autoDeserialize"),
        ({"jdbc-password": ""}, "jdbc-password is missing"),
    ],
)
def test_invalid_mysql_addresses_are_refused(more: dict[str, str], words: str) -> None:
    """An invalid MySQL address is refused with advice."""
    with pytest.raises(BadRequest, match=re.escape(words)):
        check_source("jdbc-mysql", {**MYSQL, **more}, limits=LIMITS)


@pytest.mark.parametrize(
    "uris",
    [
        "",
        ",",
        "a.example.com:9083",
        "thrift://",
        "thrift://a.example.com:0",
        "thrift://a.example.com:x",
        "thrift://u:p@a.example.com",
        "thrift://a.example.com/x",
        "thrift://a.example.com?x=1",
        "thrift://[::1",
        "http://a.example.com:9083",
        "thrift://a.example.com," * 9,
    ],
)
def test_wrong_metastores_are_refused(uris: str) -> None:
    """The error for an invalid metastore names the property."""
    with pytest.raises(BadRequest, match=r"metastore\.uris"):
        check_source("hive", {"metastore.uris": uris}, limits=LIMITS)


def test_every_metastore_has_to_be_allowed() -> None:
    """A metastore that is not allowed is refused with the flag that would allow it, including its port."""
    with pytest.raises(BadRequest, match=r"--allow-source c\.example\.com:9083"):
        check_source("hive", {"metastore.uris": "thrift://a.example.com,thrift://c.example.com"}, limits=LIMITS)


@pytest.mark.parametrize("name, value", [("kerberos.principal", "p"), ("impersonation-enable", "true")])
def test_unsupported_kerberos_and_impersonation_are_refused(name: str, value: str) -> None:
    """Kerberos and impersonation are refused, not ignored."""
    with pytest.raises(BadRequest, match=name):
        check_source("hive", {**HIVE, name: value}, limits=LIMITS)
    check_source("hive", {**HIVE, "impersonation-enable": "false"}, limits=LIMITS)
