# SPDX-License-Identifier: Apache-2.0
"""Kinds of operations that rewrite files of tables, and the data that the server stores with each operation.

Must not know leases.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.formats.gravitino.policies import CONCURRENT_GROUPS, concurrent_groups
from limnos.model.principals import TokenTrust
from limnos.rooms.maintenance.formats.assessment import COMPACT, DELETES, MANIFESTS, TARGET_BYTES_DEFAULT
from limnos.rooms.maintenance.formats.row_retention import RETENTION, RetentionTerms
from limnos.rooms.maintenance.services.policies import PolicyTerms
from limnos.services.iceberg.spans.executors import SpanRecipe

STATISTICS: Final = "statistics"
KINDS: Final = (RETENTION, COMPACT, DELETES, MANIFESTS, STATISTICS)
"""All kinds that change a table, in the order in which they are executed on one table."""
RESTRICTED_FILES: Final = "restricted-files"
"""The kind that changes no table: it writes the files of a plan for a restricted user."""
LEASED_KINDS: Final = (*KINDS, RESTRICTED_FILES)
"""All kinds that executors lease."""
GROUP_BYTES: Final = 512 << 20
"""The size of the files that an executor rewrites in one group, in bytes."""
TASK_FILES_MIN: Final = 5
_OPTIONS_IF_BUSY: Final = {
    "partial-progress.enabled": "true",
    "partial-progress.max-commits": "10",
    "max-file-group-input-files": "20",
}
"""Options for a table whose writers are busy: small groups of files in several commits. A statement that deletes rows
of a file during the rewrite makes one commit fail, not all.
"""


class RewriteOptions(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The stored part of an operation: the trust of its requester's credential, options of Iceberg's Spark action, and
    the rows to delete.
    """

    trust: TokenTrust = TokenTrust.PROVEN
    root_id: int | None = None
    target_bytes: int = TARGET_BYTES_DEFAULT
    options: dict[str, str] = {}
    """Options of Iceberg's Spark action, from the policy and from the request."""
    is_requested: bool = False
    """Whether a user requested it; if so, it does not wait until the table has no writers."""
    terms: RetentionTerms | None = None
    """The condition for the rows that a leased operation of row retention deletes."""
    policy: PolicyTerms | None = None
    """The policy that decided about the kind when the operation was planned or requested; None without one."""
    second_user_id: int = 0
    """The user who attached the policy: the operation needs the rights of both. 0 for a requested operation."""
    spans: SpanRecipe | None = None
    """The plan whose files an operation of the kind `RESTRICTED_FILES` writes; None for any other kind."""


def action_options(kind: str, stored: RewriteOptions, *, is_busy: bool = False) -> dict[str, str]:
    """Return the options of Iceberg's Spark action for an operation; empty unless it compacts data or delete files.

    The stored options override the defaults, except the size of a file group; the number of concurrent groups is
    limited. `is_busy`: writers overwrite or delete rows of the table concurrently, so the rewrite uses several commits.
    """
    if kind == COMPACT:
        options = {
            "target-file-size-bytes": str(stored.target_bytes),
            "min-input-files": str(TASK_FILES_MIN),
            "delete-file-threshold": "8",
        }
    elif kind == DELETES:
        options = {
            "target-file-size-bytes": str(stored.target_bytes),
            "min-input-files": "1",
            "delete-file-threshold": "1",
        }
    else:
        return {}
    options = {
        **options,
        **(_OPTIONS_IF_BUSY if is_busy else {}),
        **stored.options,
        "max-file-group-size-bytes": str(GROUP_BYTES),
    }
    if CONCURRENT_GROUPS in options:
        options[CONCURRENT_GROUPS] = concurrent_groups(options[CONCURRENT_GROUPS])
    return options
