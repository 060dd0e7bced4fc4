"""The server's settings as services see them: what requests that leave something out get, and who is an admin.

May import `model`, and `files` for what is allowed. Values, made once at the start; `app` knows where they come from.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.files import AllowedStorage
from limnos.model.principals import TokenTrust
from limnos.services.request.location_conflicts import LocationConflicts
from limnos.services.request.named_storages import NamedStorages


class AuditRules(NamedTuple):
    """What the audit keeps: of changes all or nothing, of the rest one of so many requests, 0 for none."""

    changes: bool = True
    refusals_one_in: int = 1
    reads_one_in: int = 0
    refusals_per_s_max: int = 100
    keep_ms: int = 7_776_000_000
    export: str | None = None
    """Where each day's lines are written as files when the day is over; None: nowhere."""


class RequestDefaults(NamedTuple):
    """What requests that leave something out get, and how files are treated."""

    metalake: str
    catalog: str
    warehouse: str
    separator: str
    separator_policy: str
    verify_metadata_file: str
    allowed: AllowedStorage
    idempotency_s: int = 1800
    """How long clients may count on what became of a request with a key; 0 when keys are not looked at."""
    keep_dropped_ms: int = 604_800_000
    """How long what is dropped can be brought back; 0: it is gone at once."""
    keep_reports_ms: int = 604_800_000
    """How long reports of clients are kept; 0: not at all."""
    reports_sample: float = 1.0
    allowed_urls: tuple[str, ...] = ()
    """Below which addresses webhooks may lie."""
    root_schema: str = "default"
    """The schema in which full names have what lies directly in a catalog, as only Lance tables may."""
    lance_batch_bytes_max: int = 1 << 29
    lance_body_bytes_max: int = 0
    """How many bytes of rows one request may bring; 0: any."""
    sqlpp_catalog: str = "main"
    """The catalog in which dataverses of SQL++ lie."""
    sqlpp_timeout_s: float = 300.0
    """The longest time for one request's statements."""
    sqlpp_results_max: int = 32
    """How many results that are fetched later one user has."""
    sqlpp_results_bytes_max: int = 1 << 27
    sqlpp_results_keep_ms: int = 3_600_000
    file_roots: tuple[str, ...] = ()
    """Below which directories statements may read files."""
    lance_debris_ms: int = 604_800_000
    """How old what killed writers of Lance tables left is before it goes; 0: it stays."""
    sqlpp_compact_files: int = 64
    """With how many files too many a dataset is compacted; 0: never."""
    sqlpp_snapshots_keep_ms: int = 86_400_000
    """How long states of a dataset are kept that others followed."""
    scan_files_max: int = 2_000
    """How many files of a scan one answer names."""
    scan_wait_s: float = 20.0
    """How long an answer waits for a plan before it says that it is worked on."""
    scan_keep_ms: int = 3_600_000
    """How long what is left of a plan can be fetched."""
    scan_plans_max: int = 100
    """How many plans of one user are kept."""
    restricted_reader_bytes: int = 16 << 30
    restricted_table_bytes: int = 64 << 30
    """How many bytes of files that were rewritten for restricted readers there may be, of one reader and of one table."""
    sqlpp_debris_ms: int = 259_200_000
    """How old what killed statements left is before it goes; 0: it stays."""
    keep_pinned: bool = True
    """Whether commits may not remove snapshots that runs and plans need."""
    check_added_files: bool = False
    check_added_files_max: int = 1_000
    check_added_files_s: float = 10.0
    """Whether files that commits add are looked for: how many of one request, and for how long."""
    clock_ahead_ms: int = 30_000
    """How far times that clients write into metadata may be ahead of the store's clock."""
    storages: NamedStorages = NamedStorages()
    location_conflicts: LocationConflicts = LocationConflicts()
    """Whose files are given out to nobody."""
    audit: AuditRules = AuditRules()
    session_s: int = 3_600
    session_refresh_s: int = 1_209_600
    """How long a session of a password lasts, and for how long it can be refreshed."""


class AccessSettings(NamedTuple):
    """The server's settings that decisions need."""

    access_enabled: bool
    service_admins: frozenset[str]
    trusts: frozenset[TokenTrust] = frozenset({TokenTrust.BELIEVED, TokenTrust.PROVEN})
    """What a token's worth may rest on here."""
