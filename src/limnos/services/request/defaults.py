# SPDX-License-Identifier: Apache-2.0
"""The server's settings for services: defaults of requests, limits, and service admins.

`app` builds the values once at the start.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.files import AllowedStorage
from limnos.model.principals import TokenTrust
from limnos.model.quiet_hours import QuietHours
from limnos.services.request.location_rules import LocationConflicts
from limnos.services.request.named_storages import NamedStorages


class AuditRules(NamedTuple):
    """Settings of the audit: whether changes are audited, the sampling rates of refusals and reads (one of `n`; 0:
    none), the maximum number of refusals per second, and the retention time and the export of records.
    """

    changes: bool = True
    refusals_one_in: int = 1
    reads_one_in: int = 0
    refusals_per_s_max: int = 100
    keep_ms: int = 7_776_000_000
    export: str | None = None
    """The location to which each day's audit records are exported when the day is over; None for no export."""


class MaintenanceDefaults(NamedTuple):
    """The settings of the server's automatic table maintenance."""

    assess: bool = True
    """Whether the server assesses tables for maintenance."""
    expire: bool = False
    """Whether it expires snapshots of tables without a policy, by their properties and Iceberg's defaults."""
    rewrite: bool = False
    """Whether it rewrites files of tables without a policy."""
    metadata_keep_ms: int = 0
    """The retention time of metadata files that are no longer in a table's log, in milliseconds; 0 keeps them
    forever.
    """
    orphans: str = "off"
    """Whether orphan files are removed: `off`, `policies`, or `all`, also of tables without a policy."""
    orphan_age_ms: int = 7 * 86_400_000
    """The minimum time for which a file must have been an orphan before it is removed, in milliseconds, if no policy
    sets it.
    """
    quiet_hours: tuple[QuietHours, ...] = ()
    """The hours in which files are rewritten for policies and settings; empty for all."""
    bytes_per_day: int = 0
    """The maximum number of bytes that may be rewritten for them in 24 hours; 0 for no limit."""
    executor: str = "off"
    """The executor of rewrites: `local` if the server starts one itself, else `off`."""


class RequestDefaults(NamedTuple):
    """Default values of request fields, and limits and lifetimes of objects that requests create."""

    metalake: str
    catalog: str
    warehouse: str
    separator: str
    separator_policy: str
    verify_metadata_file: str
    allowed: AllowedStorage
    idempotency_s: int = 1800
    """The maximum time that clients may rely on the outcome of a request with an idempotency key, in seconds; 0 ignores
    keys.
    """
    keep_dropped_ms: int = 604_800_000
    """The time for which a dropped object can be restored, in milliseconds; 0 deletes it immediately."""
    keep_reports_ms: int = 604_800_000
    """The retention time of clients' reports, in milliseconds; 0 stores none."""
    reports_sample: float = 1.0
    allowed_urls: tuple[str, ...] = ()
    """The URL prefixes that webhooks may have."""
    root_schema: str = "default"
    """The name of the schema in full names of objects directly in a catalog; only Lance tables may be there."""
    lance_batch_bytes_max: int = 1 << 29
    lance_body_bytes_max: int = 0
    """The maximum size of the rows in one request, in bytes; 0 sets no limit."""
    sqlpp_catalog: str = "main"
    """The catalog that contains the dataverses of SQL++."""
    sqlpp_timeout_s: float = 300.0
    """The maximum time for one request's statements, in seconds."""
    sqlpp_results_max: int = 32
    """The maximum number of deferred results of one user."""
    sqlpp_results_bytes_max: int = 1 << 27
    sqlpp_results_keep_ms: int = 3_600_000
    sqlpp_streams_max: int = 16
    """The maximum number of results that a node streams to one user at once."""
    sqlpp_streams_bytes_max: int = 1 << 27
    """The maximum bytes of results that a node has in memory for one user."""
    file_roots: tuple[str, ...] = ()
    """The directories from which statements may read files."""
    export_roots: tuple[str, ...] = ()
    """The directories below which COPY TO may write files."""
    lance_debris_ms: int = 604_800_000
    """The age in milliseconds at which files of killed Lance writers are deleted; 0 keeps them."""
    sqlpp_compact_files: int = 64
    """The number of excess files at which a dataset is compacted; 0 for never."""
    sqlpp_snapshots_keep_ms: int = 86_400_000
    """The retention time of superseded snapshots of a dataset, in milliseconds."""
    scan_files_max: int = 2_000
    """The maximum number of files in one page of a scan plan."""
    scan_wait_s: float = 20.0
    """The maximum time that a response waits for a scan plan before it reports the plan as running, in seconds."""
    scan_keep_ms: int = 3_600_000
    """The time for which the remaining pages of a scan plan can be fetched, in milliseconds."""
    scan_plans_max: int = 100
    """The maximum number of stored scan plans of one user."""
    restricted_reader_bytes: int = 16 << 30
    restricted_table_bytes: int = 64 << 30
    """The maximum size of rewritten files, in bytes, for one restricted user and for one table."""
    restricted_executor_spans: int = 32
    """The number of missing spans of a plan above which executors write the files of a restricted user; 0 for never."""
    sqlpp_debris_ms: int = 259_200_000
    """The age in milliseconds at which files of killed statements are deleted; 0 keeps them."""
    keep_pinned: bool = True
    """Whether to refuse commits that remove snapshots needed by runs or scan plans."""
    keep_pinned_ms: int = 604_800_000
    """The time in milliseconds for which a pipeline run pins snapshots."""
    check_added_files: bool = False
    """Whether to check that the files which commits add exist."""
    check_added_files_max: int = 1_000
    check_added_files_s: float = 10.0
    """The limits of that check: the number of files per request, and the time in seconds."""
    clock_ahead_ms: int = 30_000
    """The maximum time by which timestamps in metadata from clients may be ahead of the store's clock, in
    milliseconds.
    """
    maintenance: MaintenanceDefaults = MaintenanceDefaults()
    storages: NamedStorages = NamedStorages()
    location_conflicts: LocationConflicts = LocationConflicts()
    """The owners of conflicting locations, whose files are withheld from all users."""
    audit: AuditRules = AuditRules()
    session_s: int = 3_600
    session_refresh_s: int = 1_209_600
    """The lifetime of a session opened with a password, and the time during which it can be refreshed, in seconds."""
    console_idle_s: int = 28_800
    console_session_s: int = 86_400
    """The idle time after which a session of the console ends, and its maximum lifetime, in seconds."""
    has_console: bool = False
    """Whether this server serves the console."""
    public_url: str | None = None
    """The URL of this server for clients, if it differs from the requests' Host."""
    is_tls: bool = False
    """Whether clients reach this server over TLS."""


class AccessSettings(NamedTuple):
    """The settings that access decisions need."""

    access_enabled: bool
    service_admins: frozenset[str]
    trusts: frozenset[TokenTrust] = frozenset({TokenTrust.BELIEVED, TokenTrust.PROVEN})
    """The kinds of trust in a token that this server accepts."""
    users_enable_catalogs: bool = False
    """Whether all users who may load a catalog may enable and disable it, as in Gravitino."""
