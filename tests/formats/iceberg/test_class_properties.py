# SPDX-License-Identifier: Apache-2.0
"""Properties that name classes or settings of runtimes."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.class_properties import (
    find_class_property,
    is_allowed_in_catalog,
    is_class_property,
    refuse_catalog_classes,
    refuse_class_properties,
)
from limnos.model.errors import BadRequest

REFUSED = (
    "write.location-provider.impl",
    "write.py-location-provider.impl",
    "io-impl",
    "py-io-impl",
    "catalog-impl",
    "lock-impl",
    "metrics-reporter-impl",
    "encryption.kms-impl",
    "encryption.kms-type",
    "encryption.other",
    "client.factory",
    "client.credentials-provider",
    "s3.client-factory-impl",
    "s3.file-io-impl",
    "fs.s3a.impl",
    "fs.file.impl.disable.cache",
    "fs.AbstractFileSystem.file.impl",
    "hadoop.security.group.mapping",
    "io.compression.codecs",
    "io.serializations",
    "spark.sql.extensions",
    "header.X-Forwarded-Host",
    "dfs.nameservices",
    "parquet.crypto.factory.class",
    "parquet.encryption.kms.client.class",
    "parquet.read.support.class",
    "mapreduce.job.inputformat.class",
    "java.class.path",
    "WRITE.Location-Provider.IMPL",
    " io-impl ",
    "table-default.write.location-provider.impl",
    "table-override.io-impl",
    "gravitino.bypass.fs.s3a.impl",
    "x.class-name",
    "x.classes",
    "impl",
    "my_impl",
)
ALLOWED = (
    "write.format.default",
    "write.data.path",
    "write.object-storage.enabled",
    "write.parquet.compression-codec",
    "commit.retry.num-retries",
    "read.split.target-size",
    "write.metadata.metrics.default",
    "write.metadata.metrics.column.class",
    "encryption.key-id",
    "encryption.data-key-length",
    "encryption.aad-length",
    "comment",
    "owner",
    "sqlpp.outside-writers",
    "io.manifest.cache-enabled",
    "io.manifest.cache.max-total-bytes",
    "history.expire.max-snapshot-age-ms",
    "format",
    "classification",
    "factory-name",
    "simple",
    "jdbc-driver",
    "credential-providers",
    "s3.endpoint",
    "rest.auth.type",
)


@pytest.mark.parametrize("name", REFUSED)
def test_names_of_classes_are_refused(name: str) -> None:
    """A property that an Iceberg client, Hadoop or Spark would take a class or a setting from is refused by name."""
    assert is_class_property(name, "java.util.Timer")
    assert find_class_property({"a": "b", name: "x"}) == name
    with pytest.raises(BadRequest, match=r"names a class or a setting .* another name if it only describes the table"):
        refuse_class_properties({name: "java.util.Timer"})
    with pytest.raises(BadRequest, match="of a catalog"):
        refuse_catalog_classes({name: "java.util.Timer"})


@pytest.mark.parametrize("name", ALLOWED)
def test_other_properties_are_allowed(name: str) -> None:
    """Usual properties of tables and catalogs are stored."""
    refuse_class_properties({name: "v"})
    refuse_catalog_classes({name: "v"})


def test_catalogs_may_name_icebergs_own_file_access() -> None:
    """A catalog may set `io-impl` to a class of Iceberg's libraries, a table may not."""
    own = "org.apache.iceberg.aws.s3.S3FileIO"

    assert is_allowed_in_catalog("io-impl", own)
    assert is_allowed_in_catalog("py-io-impl", "pyiceberg.io.fsspec.FsspecFileIO")
    assert not is_allowed_in_catalog("io-impl", f"{own}x")
    assert not is_allowed_in_catalog("catalog-impl", own)
    assert is_class_property("io-impl", own)


def test_an_authentication_type_may_not_be_a_class() -> None:
    """Iceberg's clients take `rest.auth.type` as a class if it is none of their words."""
    assert is_class_property("rest.auth.type", "com.example.Manager")
    assert not is_class_property("rest.auth.type", "oauth2")
    with pytest.raises(BadRequest, match=r"names a class or a setting .* another name if it only describes the table"):
        refuse_class_properties({"comment": "c", "REST.auth.type": "com.example.Manager"})
