# SPDX-License-Identifier: Apache-2.0
"""Values of the server's responses about storage, background tasks, nodes, settings and SQL++ statements.

Must not know HTTP.
"""

from __future__ import annotations

import msgspec

from limnos.client.values.shared import Json


class StorageStep(msgspec.Struct, frozen=True):
    """A step of a storage check: `passed`, `failed` or `not tried`, and for missing rights the policy statement that
    grants them.
    """

    name: str
    outcome: str
    told: str
    statement: str | None = None


class StorageCheckResult(msgspec.Struct, frozen=True):
    """The result of a storage check: the checked location, and the steps."""

    location: str
    steps: tuple[StorageStep, ...]
    passed: bool


class SecretKey(msgspec.Struct, frozen=True):
    """An encryption key of secrets: its id, and the counts of catalogs and webhooks whose secrets it encrypts."""

    id: str
    catalogs: int
    webhooks: int = 0
    seals: bool = False


class SecretKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A server's encryption keys, oldest first; missing keys; and the counts of catalogs and webhooks with unencrypted
    secrets.
    """

    keys: tuple[SecretKey, ...]
    lacking: tuple[SecretKey, ...]
    plain: int
    made_here: bool
    sealed: int | None = None
    """The number of catalogs and webhooks that a rotation has sealed."""


class TaskInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A background task of the server. Times are ISO 8601 strings in UTC."""

    id: int | str
    kind: str
    state: str
    attempts: int = 0
    created_at: int | float | str | None = None
    due_at: int | float | str | None = None
    ended_at: int | float | str | None = None
    progress: str | None = None
    error: str | None = None
    result: str | None = None
    payload: object = None


class FailingLoopInfo(msgspec.Struct, frozen=True):
    """A part of a node's background work that fails since a time, with the class of its last error; or that has not
    ended since then (`error` is None).
    """

    name: str
    since: int | float | str | None = None
    error: str | None = None


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A server node. Times are ISO 8601 strings in UTC; `clock_offset_ms` is the time in milliseconds by which its
    clock is ahead of the store's.
    """

    id: str
    name: str
    version: str
    started_at: int | float | str | None = None
    seen_at: int | float | str | None = None
    clock_offset_ms: int = 0
    own: bool = False
    silent: bool = False
    failing: tuple[FailingLoopInfo, ...] = ()


class SearchBehindInfo(msgspec.Struct, frozen=True):
    """The lag of the search index: the count of zones with unindexed changes, and the count of these changes."""

    zones: int = 0
    changes: int = 0


class NodesInfo(msgspec.Struct, frozen=True):
    """The nodes of the server, and the lag of its search index."""

    nodes: tuple[NodeInfo, ...] = ()
    search: SearchBehindInfo = SearchBehindInfo()


class SettingInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of the node that answers; a secret that is set has a mask as its value."""

    name: str
    value: object = None
    default: bool = True
    secret: bool = False
    origin: str = ""


class StatementMessage(msgspec.Struct, frozen=True):
    """An error or a warning of the query service. Its message begins with the code, such as `ASX1077`."""

    msg: str


class StatementResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response to SQL++ statements. `results` has the JSON text of each result; None if no statement returns
    results.
    """

    status: str
    results: tuple[msgspec.Raw, ...] | None = None
    errors: tuple[StatementMessage, ...] = ()
    warnings: tuple[StatementMessage, ...] = ()
    metrics: Json = {}
