"""Assessment of tables as functions from bytes to bytes, for worker processes.

May import this package and msgspec. Must not know who runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from limnos.formats.maintenance.assessment import (
    AssessmentRules,
    ManifestRow,
    assess_table,
    manifest_findings,
    read_manifest_rows,
    read_small_files,
)
from limnos.formats.maintenance.explanation import expiry_chore, explain_chore


class AssessmentTerms(msgspec.Struct, array_like=True):
    """The arguments beside a batch of documents: the time, and for each table its metadata file and its rules."""

    now_ms: int
    tables: list[tuple[str, AssessmentRules]]


class ManifestTerms(msgspec.Struct, array_like=True):
    """The arguments beside a table's manifests: all rows of its manifest list, and the target size of files."""

    rows: list[ManifestRow]
    target_bytes: int


def assess_chore(terms: bytes, *bodies: bytes) -> list[bytes]:
    """Assess tables by their documents: terms and documents in, JSON of `Assessment`s out."""
    told = msgspec.json.decode(terms, type=AssessmentTerms)
    found = [
        assess_table(body, location, rules=rules, now_ms=told.now_ms)
        for body, (location, rules) in zip(bodies, told.tables, strict=True)
    ]
    return [msgspec.json.encode(found)]


def manifest_rows_chore(data: bytes) -> list[bytes]:
    """Read a manifest list: its bytes in, JSON of `ManifestRow`s out. Raises InvalidTable."""
    return [msgspec.json.encode(read_manifest_rows(data))]


def manifest_findings_chore(terms: bytes, *manifests: bytes) -> list[bytes]:
    """Assess a table by its manifests: terms and manifests in, JSON of `AssessmentFinding`s out. Raises InvalidTable."""
    told = msgspec.json.decode(terms, type=ManifestTerms)
    figures = read_small_files(manifests, target_bytes=told.target_bytes) if manifests else None
    return [msgspec.json.encode(manifest_findings(told.rows, figures, target_bytes=told.target_bytes))]


CHORES: Final[Mapping[str, Callable[..., list[bytes]]]] = {
    "maintenance-assess": assess_chore,
    "maintenance-manifest-rows": manifest_rows_chore,
    "maintenance-manifest-findings": manifest_findings_chore,
    "maintenance-explain": explain_chore,
    "maintenance-expiry": expiry_chore,
}
"""The functions that a worker process offers, by name."""
