# SPDX-License-Identifier: Apache-2.0
"""Values of a commit: the change of a table, the state that it applies to, and the checks of its transaction.

Must not know the steps of a commit.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.formats.iceberg.json_types import Json


class CommitChange(NamedTuple):
    """The change that a commit makes to one table: requirements and updates of Iceberg REST."""

    requirements: list[object]
    updates: list[object]
    raw: bytes | None = None
    """The body of a large request, decoded only by offloaded work; requirements and updates are then empty."""


class CommitState(NamedTuple):
    """The state that a change applies to: a table's document, or the result of earlier changes of the same request."""

    uuid: str
    file: str | None
    """The location of its metadata file; None if it is not written yet."""
    metadata: Json | None
    """The decoded metadata; None if only offloaded work decodes it."""
    body: bytes


class CommitGuards(NamedTuple):
    """Conditions that a commit's transaction checks: no run or plan needs the snapshots that the commit removes, and
    the orphan fence's deadline has not passed.
    """

    removed: frozenset[int]
    fence_until: float | None


class CommitEffects(NamedTuple):
    """The effects of a commit in addition to the document: its guards, new data locations outside of the table's own,
    whether the comment and the current schema are unchanged, the columns that it renames or drops, and whether a new
    location has files of nobody.
    """

    guards: CommitGuards
    data_paths: tuple[str, ...]
    keeps_words: bool
    ended: tuple[tuple[int, str], ...] = ()
    had_files: bool = False
