# SPDX-License-Identifier: Apache-2.0
"""Managed versions of Lance tables, as frozen values.

Must not know stores or files.
"""

from __future__ import annotations

import msgspec


class LanceVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a Lance table on a branch; `""` is the main branch.

    `staged` is the name of the manifest as its writer stored it, in addition to its final path. It is "" for a version
    that was written before the store managed the table's versions. `metadata` is JSON from the writer. `settled` means
    that the manifest certainly has its final name.
    """

    branch: str
    version: int
    scheme: int
    staged: str
    size: int | None
    e_tag: str | None
    metadata: str
    created_at: int
    settled: bool
