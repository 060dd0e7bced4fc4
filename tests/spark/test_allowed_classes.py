# SPDX-License-Identifier: Apache-2.0
"""Names of table properties that may make a library construct a class, and settings of file systems."""

from __future__ import annotations

import pytest

from limnos.spark.allowed_classes import (
    LOCAL,
    REFUSED,
    SCHEMES,
    UnsafeTable,
    check_names,
    hadoop_settings,
    is_unsafe,
    schemes_of,
)

UNSAFE = (
    "write.location-provider.impl",
    "metrics-reporter-impl",
    "io-impl",
    "encryption.kms-impl",
    "fs.file.impl",
    "fs.defaultFS",
    " FS.s3a.impl ",
    "hadoop.security.key.provider.path",
    "parquet.crypto.factory.class",
    "parquet.encryption.kms.instance.url",
    "parquet.write.support.class",
    "orc.key.provider",
    "orc.encrypt",
    "io.compression.codecs",
    "io.serializations",
    "ipc.client.connect.timeout",
    "net.topology.node.switch.mapping.impl",
    "java.protocol.handler.pkgs",
    "lock-impl",
    "dfs.nameservices",
    "s3.client-factory-impl",
)
SAFE = (
    "owner",
    "comment",
    "provider",
    "data-class",
    "write.parquet.compression-codec",
    "write.format.default",
    "write.metadata.metrics.column.impl",
    "write.metadata.metrics.column.a.impl",
    "write.parquet.bloom-filter-enabled.column.provider",
    "write.data.path",
    "write.metadata.path",
    "orc.compress",
    "parquet.compression",
    "spark.sql.create.version",
    "sqlpp.type",
    "history.expire.max-snapshot-age-ms",
    "simple",
)


@pytest.mark.parametrize("name", UNSAFE)
def test_property_that_names_a_class_is_unsafe(name: str) -> None:
    """A table with such a property is not opened; the error names the property."""
    with pytest.raises(UnsafeTable, match=name.strip().split(".", maxsplit=1)[0]):
        check_names(["owner", name])


@pytest.mark.parametrize("name", SAFE)
def test_ordinary_property_is_safe(name: str) -> None:
    """Properties of Iceberg without classes, of users and of migrated tables are safe, also for odd column names."""
    assert not is_unsafe(name)
    check_names([name])


def test_every_known_scheme_is_refused_except_configured_ones() -> None:
    """Each scheme has the class that does not exist, for both of Hadoop's interfaces, unless the administrator's
    settings name a class for it.
    """
    own = {"spark.hadoop.fs.hdfs.impl": "org.apache.hadoop.hdfs.DistributedFileSystem", "spark.executor.cores": "1"}
    settings = hadoop_settings(own)

    assert settings["spark.hadoop.fs.http.impl"] == settings["spark.hadoop.fs.AbstractFileSystem.http.impl"] == REFUSED
    assert "spark.hadoop.fs.hdfs.impl" not in settings
    assert "file" not in SCHEMES
    assert schemes_of(own) == LOCAL | {"hdfs"}
    assert schemes_of({}) == LOCAL
