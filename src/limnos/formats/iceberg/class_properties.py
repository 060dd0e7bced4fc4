# SPDX-License-Identifier: Apache-2.0
"""Properties that name a class, or settings of another system's runtime: refused in tables and catalogs.

Pure. A client or engine that reads such a property constructs the class, or changes its own settings, in its own
process and with its own rights: the one who wrote the property may have fewer. Source: Iceberg's `TableProperties`,
`CatalogProperties`, `AwsClientProperties` and `Parquet.WriteBuilder`, which copies a table's properties to Hadoop's
configuration. Decision record 0159; docs/reference/refused-properties.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import BadRequest

ALLOWED_CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "io-impl": frozenset(
        {
            "org.apache.iceberg.aws.s3.S3FileIO",
            "org.apache.iceberg.gcp.gcs.GCSFileIO",
            "org.apache.iceberg.azure.adlsv2.ADLSFileIO",
            "org.apache.iceberg.aliyun.oss.OSSFileIO",
            "org.apache.iceberg.hadoop.HadoopFileIO",
            "org.apache.iceberg.io.ResolvingFileIO",
        }
    ),
    "py-io-impl": frozenset({"pyiceberg.io.pyarrow.PyArrowFileIO", "pyiceberg.io.fsspec.FsspecFileIO"}),
}
"""Properties of catalogs that may name one of these classes, which are parts of Iceberg's own libraries."""
ALLOWED_PREFIXES: Final = ("io.manifest.",)
"""Beginnings of properties that are allowed although one of `RUNTIME_PREFIXES` fits."""
RUNTIME_PREFIXES: Final = (
    "dfs.",
    "fs.",
    "hadoop.",
    "header.",
    "io.",
    "ipc.",
    "java.",
    "mapred.",
    "mapreduce.",
    "spark.",
    "yarn.",
)
"""Beginnings of settings of Spark, Hadoop, Java and HTTP clients."""
ENCRYPTION_VALUES: Final = frozenset({"encryption.key-id", "encryption.data-key-length", "encryption.aad-length"})
"""Iceberg's properties of encrypted tables that name no class. All others of `encryption.` are refused."""
OF_VIEWS: Final = frozenset({"spark.query-column-names"})
"""Properties of views that name no class, although one of `RUNTIME_PREFIXES` fits: Spark sets them."""
_ENCRYPTION: Final = "encryption."
_WRAPPERS: Final = ("table-default.", "table-override.", "view-default.", "view-override.", "gravitino.bypass.")
"""Beginnings after which another property follows: one that clients set on tables, or that Gravitino passes on."""
_CLASS: Final = re.compile(r"(?:^|[.\-_])(?:impl|class|classes|class-?name|factory|credentials-provider|kms-type)$")
_PARTS: Final = ("impl", "class", "factory", "credentials-provider", "kms-type")
"""Strings of which each name that `_CLASS` matches contains one."""
_OF_COLUMN: Final = re.compile(r"write\.[a-z.\-]+\.column\.")
"""Iceberg's properties of one column, whose name ends with that of the column."""
_NAMES_CLASS: Final = frozenset({"rest.auth.type"})
"""Properties whose value is a word or, with a dot in it, a class."""
_SUSPECT: Final = re.compile("|".join(map(re.escape, (*_PARTS, *RUNTIME_PREFIXES, _ENCRYPTION, *sorted(_NAMES_CLASS)))))
"""Matches within each name that `is_class_property` finds, in small letters. Most names contain no such string."""


def is_class_property(name: str, value: str) -> bool:
    """Return whether a property of a table names a class or a setting of a runtime."""
    lower_name = name.strip().lower()
    for wrapper in _WRAPPERS:
        lower_name = lower_name.removeprefix(wrapper)
    if (
        lower_name in ENCRYPTION_VALUES
        or lower_name.startswith(ALLOWED_PREFIXES)
        or _OF_COLUMN.match(lower_name) is not None
    ):
        return False
    if lower_name in _NAMES_CLASS:
        return "." in value
    return lower_name.startswith((*RUNTIME_PREFIXES, _ENCRYPTION)) or _CLASS.search(lower_name) is not None


def find_class_property(properties: Mapping[str, str]) -> str | None:
    """Return the name of a property of a table that names a class or a setting of a runtime; None if there is none."""
    return next((name for name, value in properties.items() if is_class_property(name, value)), None)


def refuse_class_properties(properties: Mapping[str, str]) -> None:
    """Raise BadRequest if a new property of a table names a class or a setting of a runtime."""
    for name, value in properties.items():
        if _SUSPECT.search(name.lower()) is not None and is_class_property(name, value):
            raise _refusal(name, "table")


def refuse_view_classes(properties: Mapping[str, str]) -> None:
    """Raise BadRequest if a new property of a view names a class or a setting of a runtime."""
    for name, value in properties.items():
        if name not in OF_VIEWS and is_class_property(name, value):
            raise _refusal(name, "view")


def refuse_catalog_classes(properties: Mapping[str, str]) -> None:
    """Check the new properties of a catalog.

    Raises BadRequest for a property that names another class than one of Iceberg's own, or a setting of a runtime.
    """
    for name, value in properties.items():
        if not is_allowed_in_catalog(name, value):
            raise _refusal(name, "catalog")


def is_allowed_in_catalog(name: str, value: str) -> bool:
    """Return whether a catalog may have a property: it names no class, or one of Iceberg's own."""
    if not is_class_property(name, value):
        return True
    lower_name = name.strip().lower()
    for wrapper in _WRAPPERS:
        lower_name = lower_name.removeprefix(wrapper)
    return value in ALLOWED_CLASSES.get(lower_name, ())


def _refusal(name: str, word: str) -> BadRequest:
    return BadRequest(
        f"Property '{preview_value(name)}' of a {word} names a class or a setting of the clients' own runtime, which"
        " the server does not store: set it in the client's own configuration, or give it another name if it only"
        f" describes the {word}"
    )
