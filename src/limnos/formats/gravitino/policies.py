# SPDX-License-Identifier: Apache-2.0
"""Contents of policies: custom rules, or settings for the maintenance of tables (Gravitino's content classes).

Pure. Must not know the application of policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from limnos.formats.iceberg.json_types import Json, preview_value
from limnos.model.errors import BadRequest
from limnos.model.quiet_hours import parse_quiet_hours

Content = TypeVar("Content", bound=msgspec.Struct)
CUSTOM: Final = "custom"
COMPACTION: Final = "system_iceberg_compaction"
SNAPSHOT_EXPIRATION: Final = "system_iceberg_snapshot_expiration"
ORPHAN_FILE_REMOVAL: Final = "system_iceberg_orphan_file_removal"
TABLE_MAINTENANCE: Final = "system_iceberg_table_maintenance"
ROW_RETENTION: Final = "limnos-row-retention"
MAINTENANCE_TYPES: Final = (COMPACTION, SNAPSHOT_EXPIRATION, ORPHAN_FILE_REMOVAL, TABLE_MAINTENANCE, ROW_RETENTION)
"""Types of policies about Iceberg tables, for catalogs, schemas and tables."""
ORPHAN_DAYS_MIN: Final = 3
"""The minimum age of orphan files in a policy, in days: writers may need uncommitted files for long."""
_NUMBER_MAX: Final = 1_000_000_000
_FILE_BYTES_MAX: Final = 8 << 30
RETENTION_DAYS_MAX: Final = 36_500
COLUMN_CHARS_MAX: Final = 255
OPTIONS_MAX: Final = 50
OPTION_CHARS_MAX: Final = 200
CONCURRENT_GROUPS: Final = "max-concurrent-file-group-rewrites"
CONCURRENT_GROUPS_MAX: Final = 20
"""The maximum number of file groups that one operation rewrites concurrently: Iceberg starts a thread and a Spark job
for each.
"""
REWRITE_OPTIONS: Final = frozenset(
    {
        "cache-delete-files",
        "delete-file-threshold",
        "delete-ratio-threshold",
        CONCURRENT_GROUPS,
        "max-file-group-input-files",
        "max-file-group-size-bytes",
        "max-file-size-bytes",
        "max-files-to-rewrite",
        "min-file-size-bytes",
        "min-input-files",
        "output-spec-id",
        "partial-progress.enabled",
        "partial-progress.max-commits",
        "partial-progress.max-failed-commits",
        "remove-dangling-deletes",
        "rewrite-all",
        "rewrite-job-order",
        "target-file-size-bytes",
        "use-starting-sequence-number",
    }
)
"""The options of Iceberg's action that rewrites data files without sorting them.

Source: `validOptions` of `RewriteDataFilesSparkAction`, `SizeBasedFileRewritePlanner` and `BinPackRewriteFilePlanner`
in Iceberg 1.12. Older releases lack some of them, such as `cache-delete-files`.
"""
QUIET_HOURS_MAX: Final = 24
"""The maximum number of quiet hours of a policy: each waiting operation is compared with all of them."""
OBJECT_TYPES: Final = ("CATALOG", "SCHEMA", "TABLE", "VIEW", "FILESET", "TOPIC", "MODEL", "FUNCTION", "COLUMN")
"""Types of objects to which a policy can be attached."""
_MAINTAINED: Final = ("CATALOG", "SCHEMA", "TABLE")


class CustomContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """The content of a policy with custom rules, which the server only stores."""

    supported_object_types: list[str]
    custom_rules: dict[str, object] | None = None
    properties: dict[str, str] | None = None


class CompactionContent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True, kw_only=True
):
    """The content of a policy that compacts tables: thresholds, weights, and options of Iceberg's rewrite action."""

    min_data_file_mse: int | None = None
    min_delete_file_number: int | None = None
    data_file_mse_weight: int | None = None
    delete_file_number_weight: int | None = None
    max_partition_num: int | None = None
    rewrite_options: dict[str, str] | None = None


class SnapshotExpirationContent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """The content of a policy that expires snapshots of tables."""

    older_than_days: int | None = None
    retain_last: int | None = None
    stream_results: bool | None = None
    """An option for executors on Spark; the server itself ignores it."""
    min_snapshot_count: int | None = None


class OrphanFileRemovalContent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """The content of a policy that removes orphan files: files that no snapshot references."""

    older_than_days: int | None = None
    location: str | None = None
    dry_run: bool | None = None
    cleanup_interval_days: int | None = None


class TableMaintenanceContent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True, kw_only=True
):
    """The content of a policy for maintenance that deletes no data: which kinds of maintenance are enabled, and their
    limits.
    """

    compact: bool | None = True
    """Whether to compact small files and position deletes. None, also in the next two fields: the policy does not
    decide this, so that another type may.
    """
    manifests: bool | None = True
    indexes: bool | None = True
    """Whether to refresh the indexes of Lance tables."""
    target_file_size_bytes: int | None = None
    min_delete_file_number: int | None = None
    quiet_hours: list[str] | None = None
    """The hours in which files are rewritten, such as `22:00-06:00 Europe/Berlin`; the setting
    `maintenance.quiet_hours` narrows them.
    """
    max_bytes_per_day: int | None = None
    """The maximum number of bytes of small files that are rewritten for this policy in 24 hours."""


class RowRetentionContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """The content of a policy that deletes rows by their age in a column."""

    column: str
    """A top-level column of type date, timestamp or timestamptz."""
    older_than_days: int
    quiet_hours: list[str] | None = None


def content_of(text: str, shape: type[Content]) -> Content:
    """Decode the content of a stored policy."""
    return msgspec.json.decode(text, type=shape)


def content_text(policy_type: str, content: Json) -> str:
    """Check the content of a policy and encode it for its record.

    Raises BadRequest for an unknown type or malformed content.
    """
    if policy_type == CUSTOM:
        return msgspec.json.encode(_custom(_read(content, CustomContent))).decode()
    if policy_type == COMPACTION:
        return msgspec.json.encode(_compaction(_read(content, CompactionContent))).decode()
    if policy_type == SNAPSHOT_EXPIRATION:
        return msgspec.json.encode(_expiration(_read(content, SnapshotExpirationContent))).decode()
    if policy_type == ORPHAN_FILE_REMOVAL:
        return msgspec.json.encode(_orphan_removal(_read(content, OrphanFileRemovalContent))).decode()
    if policy_type == TABLE_MAINTENANCE:
        return msgspec.json.encode(_table_maintenance(_read(content, TableMaintenanceContent))).decode()
    if policy_type == ROW_RETENTION:
        return msgspec.json.encode(_row_retention(_read(content, RowRetentionContent))).decode()
    types_text = ", ".join((CUSTOM, *MAINTENANCE_TYPES))
    raise BadRequest(f"Field policyType must be one of {types_text}, not {preview_value(policy_type)}")


def _read(content: Json, shape: type[Content]) -> Content:
    try:
        return msgspec.convert(content, shape)
    except msgspec.ValidationError as error:
        names = ", ".join(field.encode_name for field in msgspec.structs.fields(shape))
        raise BadRequest(f"Field content does not fit the policy's type: {error}. Its fields are {names}") from None


def _custom(content: CustomContent) -> CustomContent:
    types = tuple(dict.fromkeys(each.upper() for each in content.supported_object_types))
    unknown = [each for each in types if each not in OBJECT_TYPES]
    if unknown or not types:
        text = f", not {preview_value(unknown[0])}" if unknown else ""
        raise BadRequest(f"Field supportedObjectTypes must name one or more of {', '.join(OBJECT_TYPES)}{text}")
    return msgspec.structs.replace(content, supported_object_types=list(types))


def _compaction(content: CompactionContent) -> CompactionContent:
    for name, value in msgspec.structs.asdict(content).items():
        if isinstance(value, int) and value < 0:
            raise BadRequest(f"Field {name} of the content is negative: {value}")
    check_options(content.rewrite_options or {}, field="rewriteOptions of the content")
    return content


def check_options(options: Mapping[str, str], *, field: str) -> None:
    """Check options of Iceberg's rewrite action, which are stored with each operation and sent to its executor.

    Raises BadRequest for too many or too long options, or a count of concurrent groups out of range.
    """
    if len(options) > OPTIONS_MAX:
        raise BadRequest(f"Field {field} has {len(options)} options, and at most {OPTIONS_MAX}")
    for name, value in options.items():
        if len(name) > OPTION_CHARS_MAX or len(value) > OPTION_CHARS_MAX:
            raise BadRequest(f"Field {field} has an option longer than {OPTION_CHARS_MAX} characters: {name[:50]}")
    groups = options.get(CONCURRENT_GROUPS, "1")
    if concurrent_groups(groups) != groups:
        raise BadRequest(f"Field {field} has {CONCURRENT_GROUPS} {groups!a}: use 1 to {CONCURRENT_GROUPS_MAX}")


def unknown_options(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of options that Iceberg's rewrite action does not have, sorted. The action fails on them."""
    return tuple(sorted(name for name in options if name not in REWRITE_OPTIONS))


def concurrent_groups(text: str) -> str:
    """Return the count of concurrently rewritten file groups in `text`, clamped to the allowed range; 1 if `text` is
    not a number.
    """
    return str(max(1, min(CONCURRENT_GROUPS_MAX, int(text) if text.isascii() and text.isdecimal() else 1)))


def _expiration(content: SnapshotExpirationContent) -> SnapshotExpirationContent:
    _check_number("olderThanDays", content.older_than_days, least=0)
    _check_number("retainLast", content.retain_last, least=1)
    _check_number("minSnapshotCount", content.min_snapshot_count, least=0)
    return content


def _orphan_removal(content: OrphanFileRemovalContent) -> OrphanFileRemovalContent:
    _check_number("olderThanDays", content.older_than_days, least=ORPHAN_DAYS_MIN)
    _check_number("cleanupIntervalDays", content.cleanup_interval_days, least=1)
    if content.location is not None:
        raise BadRequest(
            "Field location of the content is not supported: the server only reads each table's own location"
        )
    return content


def _table_maintenance(content: TableMaintenanceContent) -> TableMaintenanceContent:
    _check_number("targetFileSizeBytes", content.target_file_size_bytes, least=1 << 20, most=_FILE_BYTES_MAX)
    _check_number("minDeleteFileNumber", content.min_delete_file_number, least=1)
    _check_number("maxBytesPerDay", content.max_bytes_per_day, least=1, most=1 << 60)
    return msgspec.structs.replace(content, quiet_hours=_check_hours(content.quiet_hours))


def _check_hours(hours: list[str] | None) -> list[str] | None:
    if len(hours or ()) > QUIET_HOURS_MAX:
        raise BadRequest(f"Field quietHours of the content has {len(hours or ())} hours, and at most {QUIET_HOURS_MAX}")
    try:
        return None if hours is None else [str(parse_quiet_hours(each)) for each in hours]
    except ValueError as error:
        raise BadRequest(f"Field quietHours of the content: {error}") from None


def _row_retention(content: RowRetentionContent) -> RowRetentionContent:
    if not 0 < len(content.column) <= COLUMN_CHARS_MAX:
        raise BadRequest(f"Field column of the content must name a column, in at most {COLUMN_CHARS_MAX} characters")
    _check_number("olderThanDays", content.older_than_days, least=1, most=RETENTION_DAYS_MAX)
    return msgspec.structs.replace(content, quiet_hours=_check_hours(content.quiet_hours))


def _check_number(name: str, value: int | None, *, least: int, most: int = _NUMBER_MAX) -> None:
    if value is not None and not least <= value <= most:
        raise BadRequest(f"Field {name} of the content must be from {least} to {most}, not {value}")


def supported_types(policy_type: str, text: str) -> tuple[str, ...]:
    """Return the types of objects to which a policy can be attached, such as `TABLE`."""
    if policy_type in MAINTENANCE_TYPES:
        return _MAINTAINED
    return tuple(msgspec.json.decode(text, type=CustomContent).supported_object_types)
