# SPDX-License-Identifier: Apache-2.0
"""The pure part of a session: every Spark setting from server, caller and master."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.spark import session
from limnos.spark.session import (
    EXTENSIONS,
    LISTENER,
    _environment,
    authorization,
    config_for,
    is_local,
    lineage_environment,
)


def test_iceberg_table_cache_is_off_for_every_catalog() -> None:
    """Iceberg's table cache is off for every catalog, because privileges can change between two statements."""
    settings = config_for("http://h", catalogs=("a", "b"))

    assert {name: settings[f"spark.sql.catalog.{name}.cache-enabled"] for name in "ab"} == {"a": "false", "b": "false"}


def test_catalog_is_registered_with_its_iceberg_rest_warehouse() -> None:
    """A catalog is registered by name with the server's Iceberg address and `metalake/catalog` as warehouse."""
    settings = config_for("http://h:8090/", metalake="lake", catalogs=("main",))

    assert settings["spark.sql.catalog.main"] == "org.apache.iceberg.spark.SparkCatalog"
    assert settings["spark.sql.catalog.main.type"] == "rest"
    assert settings["spark.sql.catalog.main.uri"] == "http://h:8090/iceberg"
    assert settings["spark.sql.catalog.main.warehouse"] == "lake/main"


def test_every_catalog_is_registered() -> None:
    """Several catalogs each get their own warehouse and the same credential."""
    settings = config_for("http://h", metalake="m", catalogs=("a", "b-2"), authorization="Bearer t")

    assert settings["spark.sql.catalog.a.warehouse"] == "m/a"
    assert settings["spark.sql.catalog.b-2.warehouse"] == "m/b-2"
    assert settings["spark.sql.catalog.b-2.header.Authorization"] == "Bearer t"


def test_credential_reaches_catalogs_only_and_is_hidden() -> None:
    """The credential is only in catalog settings, and Spark is configured to redact it."""
    settings = config_for("http://h", authorization="Bearer secret-1", jars=[Path("/x.jar")])

    holders = [key for key, value in settings.items() if "secret-1" in value]
    assert holders == ["spark.sql.catalog.main.header.Authorization"]
    assert "authorization" in settings["spark.redaction.regex"]


def test_without_a_credential_no_header_is_sent() -> None:
    """An anonymous session sets no Authorization header."""
    settings = config_for("http://h")

    assert not [key for key in settings if "Authorization" in key]


def test_no_io_impl_is_set() -> None:
    """No io-impl is set, because it would override the catalog's own configuration."""
    settings = config_for("http://h")

    assert not [key for key in settings if key.endswith("io-impl")]


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4]", "local-cluster[1,1,1024]"])
def test_local_master_uses_loopback_and_few_partitions(master: str) -> None:
    """A local master has no web UI, loopback addresses, and few shuffle partitions."""
    settings = config_for("http://h", master=master)

    assert is_local(master)
    assert settings["spark.ui.enabled"] == "false"
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert int(settings["spark.sql.shuffle.partitions"]) < 200


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_cluster_master_keeps_spark_defaults(master: str) -> None:
    """For a cluster master, addresses and shuffle partitions are not set."""
    settings = config_for("http://h", master=master)

    assert not is_local(master)
    assert "spark.driver.host" not in settings
    assert "spark.sql.shuffle.partitions" not in settings


def test_caller_settings_take_precedence_but_retain_iceberg() -> None:
    """The caller's settings take precedence; the caller's JARs and extensions are added to Iceberg's."""
    settings = config_for(
        "http://h",
        jars=[Path("/cache/iceberg.jar")],
        config={
            "spark.driver.memory": "5g",
            "spark.jars": "/mine.jar",
            "spark.sql.extensions": "com.example.Mine",
            "spark.sql.catalog.main.cache-enabled": "true",
        },
    )

    assert settings["spark.driver.memory"] == "5g"
    assert settings["spark.jars"] == "/cache/iceberg.jar,/mine.jar"
    assert settings["spark.sql.extensions"] == f"{EXTENSIONS},com.example.Mine"
    assert settings["spark.sql.catalog.main.cache-enabled"] == "true"


@pytest.mark.parametrize("name", ["", "a.b", "with space", "-x", "x" * 65])
def test_impossible_catalog_names_are_refused(name: str) -> None:
    """A catalog name that Gravitino does not allow is refused, because it would set other Spark settings."""
    with pytest.raises(BadRequest, match="not a catalog name"):
        config_for("http://h", catalogs=(name,))


def test_token_becomes_bearer_and_user_becomes_basic() -> None:
    """A token is sent as Bearer, a user as Basic with an empty password; without both there is no credential."""
    assert authorization(token="t0k", user=None) == "Bearer t0k"
    assert authorization(token=None, user="ana") == f"Basic {base64.b64encode(b'ana:').decode()}"
    assert authorization(token=None, user=None) is None


@pytest.mark.parametrize(
    "token, user", [("t", "u"), ("", None), ("a b", None), ("t\nx", None), (None, ""), (None, "a:b")]
)
def test_impossible_credentials_are_refused(token: str | None, user: str | None) -> None:
    """Two identities, empty ones, and ones that are invalid in a header are refused before Spark starts."""
    with pytest.raises(BadRequest):
        authorization(token=token, user=user)


def test_spark_connect_address_is_refused() -> None:
    """`sc://` is not a master URL; the error says what is expected."""
    with pytest.raises(UnsupportedOperation, match="spark://host:7077"):
        session(master="sc://host")


def test_environment_is_restored_after_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment variables that are set for a start are restored, also after a failure."""
    monkeypatch.setenv("JAVA_HOME", "/mine")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)

    inside: list[str] = []

    def start() -> None:
        with _environment({"JAVA_HOME": "/theirs", "SPARK_LOCAL_IP": "127.0.0.1"}):
            inside.extend((os.environ["JAVA_HOME"], os.environ["SPARK_LOCAL_IP"]))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        start()

    assert inside == ["/theirs", "127.0.0.1"]
    assert os.environ["JAVA_HOME"] == "/mine"
    assert "SPARK_LOCAL_IP" not in os.environ


def test_lineage_listener_is_added_to_the_callers_listeners() -> None:
    """The listener's archive and class are added to those of the caller; without lineage nothing is set."""
    extra = {"spark.jars": "/y.jar", "spark.extraListeners": "mine"}
    settings = config_for("http://h", jars=[Path("/x.jar"), Path("/l.jar")], lineage=True, config=extra)

    assert settings["spark.jars"] == "/x.jar,/l.jar,/y.jar"
    assert settings["spark.extraListeners"] == f"{LISTENER},mine"
    assert "spark.extraListeners" not in config_for("http://h", jars=[Path("/x.jar")])


def test_catalogs_request_s3_credentials_only_with_the_s3_option() -> None:
    """With `s3` each catalog requests credentials or signatures and has no key; without it no catalog requests any."""
    header = ".header.X-Iceberg-Access-Delegation"
    settings = config_for("http://h", catalogs=("a", "b"), s3=True)

    assert {key: value for key, value in settings.items() if header in key} == {
        f"spark.sql.catalog.{name}{header}": "vended-credentials,remote-signing" for name in ("a", "b")
    }
    assert not [key for key in settings if "s3." in key]
    assert not [key for key in config_for("http://h") if header in key]


def test_lineage_is_sent_with_the_credential_from_the_environment() -> None:
    """Address, metalake and credential are in one environment variable, and in no Spark setting."""
    (transport_json,) = lineage_environment("http://h:1/", metalake="lake", authorization="Bearer secret-1").values()
    transport = json.loads(transport_json or "")

    assert (transport["url"], transport["urlParams"]) == ("http://h:1", {"metalake": "lake"})
    assert transport["headers"] == {"Authorization": "Bearer secret-1"}
    settings = config_for("http://h", authorization="Bearer secret-1", lineage=True)
    assert [key for key, value in settings.items() if "secret-1" in value] == [
        "spark.sql.catalog.main.header.Authorization"
    ]
    assert "headers" not in str(lineage_environment("http://h", metalake="lake", authorization=None))
