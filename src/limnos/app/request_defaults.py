# SPDX-License-Identifier: Apache-2.0
"""Defaults of requests: the settings of a server, converted to the values that services use.

Must not know stores, protocols or processes.
"""

from __future__ import annotations

from pathlib import Path

from limnos.config.active_rooms import rooms_of
from limnos.config.audit import AuditSection
from limnos.config.maintenance import MaintenanceSection
from limnos.config.settings import Settings
from limnos.files import AllowedStorage, root_of
from limnos.model.quiet_hours import parse_quiet_hours
from limnos.services.request.defaults import AuditRules, MaintenanceDefaults, RequestDefaults
from limnos.services.request.location_rules import LocationConflicts
from limnos.services.request.named_storages import NamedStorages, split_list

CONSOLE_IDLE_HTTP_S = 3_600
"""The maximum idle time of a console session over HTTP, in seconds."""


def warehouse_of(settings: Settings) -> str:
    """Return the storage location of tables in catalogs without their own warehouse."""
    warehouse = settings.storage.warehouse
    if warehouse is None:
        return f"file://{Path(settings.server.data).absolute()}/warehouse"
    return root_of(warehouse).rstrip("/")


def metalakes_named(settings: Settings) -> set[str]:
    """Return the names of the metalakes in settings: those of issuers and storages, and the default metalake."""
    storages = [each["metalakes"].reveal() for each in settings.storage.named.values() if "metalakes" in each]
    metalake_names = [name for text in storages for name in split_list(text)]
    return {*settings.oidc.metalakes, *metalake_names, settings.server.metalake}


def defaults_of(
    settings: Settings, allowed: AllowedStorage, *, storages: NamedStorages, is_tls: bool
) -> RequestDefaults:
    """Convert the settings that requests use to `RequestDefaults`. `is_tls` is whether clients reach it over TLS."""
    return RequestDefaults(
        metalake=settings.server.metalake,
        catalog=settings.server.catalog,
        warehouse=warehouse_of(settings),
        separator=settings.names.separator,
        separator_policy=settings.names.separator_policy,
        verify_metadata_file=settings.iceberg.verify_metadata_file,
        allowed=allowed,
        idempotency_s=settings.iceberg.idempotency_lifetime_s,
        keep_dropped_ms=settings.store.trash_retention_s * 1000,
        keep_reports_ms=settings.iceberg.report_retention_s * 1000,
        reports_sample=settings.iceberg.report_sample,
        allowed_urls=settings.events.allowed_urls,
        root_schema=settings.lance.root_schema,
        lance_batch_bytes_max=settings.lance.batch_bytes_max,
        lance_body_bytes_max=settings.lance.body_bytes_max,
        sqlpp_catalog=settings.sqlpp.catalog,
        sqlpp_timeout_s=settings.sqlpp.timeout_s,
        sqlpp_results_max=settings.sqlpp.results_max,
        sqlpp_results_bytes_max=settings.sqlpp.results_bytes_max,
        sqlpp_results_keep_ms=settings.sqlpp.results_keep_s * 1000,
        sqlpp_streams_max=settings.sqlpp.streams_max,
        sqlpp_streams_bytes_max=settings.sqlpp.streams_bytes_max,
        file_roots=tuple(map(root_of, settings.sqlpp.file_roots)),
        export_roots=tuple(map(root_of, settings.sqlpp.export_roots)),
        lance_debris_ms=settings.lance.debris_age_s * 1000,
        sqlpp_compact_files=settings.sqlpp.compact_files,
        sqlpp_snapshots_keep_ms=settings.sqlpp.snapshots_keep_s * 1000,
        scan_files_max=settings.planning.files_max,
        scan_wait_s=settings.planning.wait_s,
        scan_keep_ms=settings.planning.keep_s * 1000,
        scan_plans_max=settings.planning.plans_max,
        restricted_reader_bytes=settings.planning.restricted_bytes_per_reader,
        restricted_table_bytes=settings.planning.restricted_bytes_per_table,
        restricted_executor_spans=settings.planning.executor_spans,
        sqlpp_debris_ms=settings.sqlpp.debris_age_s * 1000,
        keep_pinned=settings.iceberg.keep_pinned,
        keep_pinned_ms=settings.iceberg.keep_pinned_s * 1000,
        check_added_files=settings.iceberg.check_added_files,
        check_added_files_max=settings.iceberg.check_added_files_max,
        check_added_files_s=settings.iceberg.check_added_files_s,
        clock_ahead_ms=int(settings.iceberg.clock_ahead_s * 1000),
        maintenance=_maintenance_of(settings.maintenance),
        storages=storages,
        location_conflicts=LocationConflicts(),
        audit=audit_settings_of(settings.audit),
        session_s=settings.access.session_s,
        session_refresh_s=settings.access.session_refresh_s,
        console_idle_s=_console_idle_s(settings, is_tls=is_tls),
        console_session_s=settings.console.session_s,
        has_console=rooms_of(settings).is_on("console"),
        public_url=settings.server.public_url,
        is_tls=is_tls,
    )


def _maintenance_of(section: MaintenanceSection) -> MaintenanceDefaults:
    """Return the settings of maintenance as services use them."""
    return MaintenanceDefaults(
        assess=section.assess,
        expire=section.expire_snapshots,
        rewrite=section.rewrite_files,
        metadata_keep_ms=section.metadata_retention_s * 1000,
        orphans=section.orphan_files,
        orphan_age_ms=section.orphan_age_s * 1000,
        quiet_hours=tuple([parse_quiet_hours(each) for each in section.quiet_hours]),
        bytes_per_day=section.bytes_per_day,
        executor=section.executor,
    )


def audit_settings_of(settings: AuditSection) -> AuditRules:
    """Convert the audit settings to `AuditRules`: seconds to milliseconds, words to sampling rates."""
    one_in = {"off": 0, "sampled": settings.sample_one_in, "whole": 1}
    return AuditRules(
        changes=settings.changes,
        refusals_one_in=one_in[settings.refusals],
        reads_one_in=one_in[settings.reads],
        refusals_per_s_max=settings.refusals_per_s_max,
        keep_ms=settings.retention_s * 1000,
        export=settings.export,
    )


def _console_idle_s(settings: Settings, *, is_tls: bool) -> int:
    """Return the idle timeout of a console session in seconds.

    It is shorter over HTTP, because browsers send the cookie to other servers on the same host.
    """
    idle_s = settings.console.idle_s
    return idle_s if is_tls else min(idle_s, CONSOLE_IDLE_HTTP_S)
