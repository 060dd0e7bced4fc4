# SPDX-License-Identifier: Apache-2.0
"""Assessment of tables as functions from bytes to bytes, for worker processes.

Must not know worker processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from limnos.rooms.maintenance.formats.assessment import (
    AssessmentRules,
    ManifestRow,
    assess_table,
    manifest_findings,
    read_manifest_rows,
    read_small_files,
)
from limnos.rooms.maintenance.formats.explanation import offloaded_expiry, offloaded_explain
from limnos.rooms.maintenance.formats.orphans import (
    offloaded_manifest_paths,
    offloaded_referenced_files,
    offloaded_references,
)
from limnos.rooms.maintenance.formats.rewrites import RewriteTerms, check_rewrite, read_manifest_entries


class AssessmentTerms(msgspec.Struct, array_like=True):
    """The arguments in addition to a batch of documents: the time, and for each table its metadata file and its
    rules.
    """

    now_ms: int
    tables: list[tuple[str, AssessmentRules]]


class ManifestTerms(msgspec.Struct, array_like=True):
    """The arguments in addition to a table's manifests: all rows of its manifest list, and the target size of files."""

    rows: list[ManifestRow]
    target_bytes: int


def offloaded_assess(terms: bytes, *bodies: bytes) -> list[bytes]:
    """Assess tables by their documents: takes `AssessmentTerms` and documents, returns JSON of `Assessment`s."""
    assessment_terms = msgspec.json.decode(terms, type=AssessmentTerms)
    assessments = [
        assess_table(body, location, rules=rules, now_ms=assessment_terms.now_ms)
        for body, (location, rules) in zip(bodies, assessment_terms.tables, strict=True)
    ]
    return [msgspec.json.encode(assessments)]


def offloaded_manifest_rows(data: bytes) -> list[bytes]:
    """Read a manifest list: takes its bytes, returns JSON of `ManifestRow`s.

    Raises InvalidTable for a malformed list.
    """
    return [msgspec.json.encode(read_manifest_rows(data))]


def offloaded_manifest_findings(terms: bytes, *manifests: bytes) -> list[bytes]:
    """Assess a table by its manifests: takes `ManifestTerms` and manifests, returns JSON of `AssessmentFinding`s.

    Raises InvalidTable for a malformed manifest.
    """
    manifest_terms = msgspec.json.decode(terms, type=ManifestTerms)
    figures = read_small_files(manifests, target_bytes=manifest_terms.target_bytes) if manifests else None
    findings = manifest_findings(
        manifest_terms.rows, figures, target_bytes=manifest_terms.target_bytes, manifests_read=len(manifests)
    )
    return [msgspec.json.encode(findings)]


def offloaded_manifest_entries(data: bytes) -> list[bytes]:
    """Read a manifest list: takes its bytes, returns JSON of `ManifestEntry`s.

    Raises InvalidTable for a malformed list.
    """
    return [msgspec.json.encode(read_manifest_entries(data))]


def offloaded_rewrite(terms: bytes, *manifests: bytes) -> list[bytes]:
    """Check a rewrite: takes `RewriteTerms` and manifests, returns JSON of `RewriteFigures`.

    Raises BadRequest if the commit does not only rewrite files, InvalidTable for a malformed manifest.
    """
    return [msgspec.json.encode(check_rewrite(msgspec.json.decode(terms, type=RewriteTerms), manifests))]


OFFLOADED_WORK: Final[Mapping[str, Callable[..., list[bytes]]]] = {
    "maintenance-assess": offloaded_assess,
    "maintenance-manifest-rows": offloaded_manifest_rows,
    "maintenance-manifest-findings": offloaded_manifest_findings,
    "maintenance-manifest-entries": offloaded_manifest_entries,
    "maintenance-rewrite": offloaded_rewrite,
    "maintenance-explain": offloaded_explain,
    "maintenance-expiry": offloaded_expiry,
    "maintenance-references": offloaded_references,
    "maintenance-manifest-paths": offloaded_manifest_paths,
    "maintenance-referenced-files": offloaded_referenced_files,
}
"""The functions that a worker process can run, by name."""
