# SPDX-License-Identifier: Apache-2.0
"""Which cases can be run against a server, and why others cannot.

A case is eligible unless it is about features that the product omits by design (feeds, libraries, clouds' adapters,
node groups, AsterixDB's storage and plans), needs AsterixDB's test bench, or names a data file that the checkout lacks.
May import `suite` and `requests`. It must not send requests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from conformance.asterixdb.requests import MACRO, TEXT_KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.asterixdb.suite import Case

_COMMENTS: Final = re.compile(r"/\*(?!\+).*?\*/|--[^\n]*|(?<!:)//[^\n]*", re.DOTALL | re.MULTILINE)
_PATH: Final = re.compile(r"(?:asterix_nc\d|localhost|127\.0\.0\.1|file)://(?P<path>/?[^\"'`,)\s]+)")
FEEDS: Final = "feeds"
LIBRARIES: Final = "external libraries"
ADAPTERS: Final = "adapters of clouds and HDFS"
NODE_GROUPS: Final = "node groups"
STORAGE: Final = "AsterixDB's storage, nodes and jobs"
PLANS: Final = "AsterixDB's plans"
BENCH: Final = "AsterixDB's test bench (shell, servers, macros, placeholders)"
DATA: Final = "data absent"
FILES: Final = "results absent"
_TEXTS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (reason, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for reason, pattern in (
        (
            FEEDS,
            r"\b(create|connect|start|stop|drop)\s+feed\b|\bingestion\s+policy\b|\bwith\s+meta\s*\(|\bfeed_datasource\b",
        ),
        (
            LIBRARIES,
            r"\b(create|drop)\s+(library|adapter)\b|[\w)]#\w+\s*\(|\bas\s+\"[\w.:]+\"\s*,?\s*\"?[\w.]*\"?\s+at\s+\w+",
        ),
        (ADAPTERS, r"\busing\s+`?(hdfs|s3|azureblob|azuredatalake|gcs|org\.apache[\w.]*)`?\s*\(|%adapter%|\bhdfs://"),
        (NODE_GROUPS, r"\bnodegroup\s+\w+\s+(if\s+not\s+exists\s+)?on\b|\b(create|drop)\s+nodegroup\b"),
        (
            STORAGE,
            r"\b(dump_index|dump-index|inject_failure|inject-failure|storage_size|storage-size|completed_requests|completed-requests|active_requests|active-requests|jobs|ping|tid|rebalance|flush_dataset|compact\s+dataset|sleep)\s*\(|\bcompact\s+dataset\b|\brefresh\s+external\b|\bexternal-dataset-storage\b",
        ),
        (PLANS, r"^\s*(set\b[^;]*;\s*|use\b[^;]*;\s*)*(explain|advise)\b"),
    )
)


def ineligible_reason(case: Case, *, root: Path) -> str | None:
    """Return why a case cannot be run; None for an eligible one."""
    if case.group == "feeds":
        return FEEDS
    if case.group in ("external-library", "external_function"):
        return LIBRARIES
    if case.placeholders or not case.steps:
        return BENCH
    for step in case.steps:
        reason = _step_reason(step.kind, step.read(), root=root)
        if reason is not None:
            return reason
    if any(step.kind in ("plan", "ast") for step in case.expected) or case.compare == "AST":
        return PLANS
    return None


def _step_reason(kind: str, text: str, *, root: Path) -> str | None:
    web = kind.endswith((".http", ".uri"))
    if not web and kind.removesuffix(".sqlpp") not in TEXT_KINDS:
        return LIBRARIES if kind == "lib.sqlpp" else BENCH
    if MACRO in text or "%adapter%" in text:
        return BENCH if MACRO in text else ADAPTERS
    if web and re.search(r"^/(connector|admin/(rebalance|cluster|plancache|storage|diagnostics))", text, re.MULTILINE):
        return STORAGE
    if web and re.search(r"^/admin/udf", text, re.MULTILINE):
        return LIBRARIES
    if kind.startswith(("plans", "profile", "metrics", "cachedplan")):
        return PLANS
    bare = _COMMENTS.sub(" ", text)
    for reason, pattern in _TEXTS:
        if pattern.search(bare):
            return reason
    return DATA if any(_is_absent(path_match["path"], root=root) for path_match in _PATH.finditer(bare)) else None


def _is_absent(path: str, *, root: Path) -> bool:
    """Return whether a data file is missing from the checkout; files that AsterixDB's build creates are missing as
    well.
    """
    relative = path.lstrip("/")
    if not relative.startswith(("data/", "target/")):
        return False
    if "*" in relative or "missing" in relative or "invalid" in relative or "not_exist" in relative:
        return False
    return not (root / "asterix-app" / relative).exists()
