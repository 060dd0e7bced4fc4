# SPDX-License-Identifier: Apache-2.0
"""Worker callbacks: handles the callbacks of a worker process that changes a managed table: list, describe and commit
versions.

Must not know any wire format: calls and results are maps, as in Lance's library. A commit is authorized and made like a
client's.
"""

from __future__ import annotations

import msgspec

from limnos.model.errors import CommitConflict, LimnosError, NotFound
from limnos.names.path import Levels
from limnos.rooms.lance.services.commits import version_create
from limnos.rooms.lance.services.versions import (
    VersionView,
    VersionWindow,
    latest_version,
    manifests_for,
    version_describe,
    version_require,
    version_view_of,
    versions_list,
)
from limnos.rooms.lance.sources.questions import ManagedVersion
from limnos.services.lance.table_files import NewVersion
from limnos.services.lance.tables import LanceTable
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


class CallbackRequest(msgspec.Struct, kw_only=True):
    """The fields of a worker's callback."""

    branch: str | None = None
    limit: int | None = None
    descending: bool = False
    version: int | None = None
    manifest_path: str = ""
    manifest_size: int | None = None
    e_tag: str | None = None
    metadata: dict[str, str] | None = None


class VersionCallbacks:
    """Handles a worker's callbacks about one table, under the rights of its caller.

    `failure` is an error that the worker cannot transmit; `committed_version` is the version that was committed.
    """

    def __init__(self, ctx: Context, scope: RequestScope, *, levels: Levels) -> None:
        self._ctx = ctx
        self._scope = scope
        self._levels = levels
        self.failure: LimnosError | None = None
        self.committed_version: int | None = None

    async def answer(self, name: str, about: bytes) -> list[bytes]:
        """Handle a callback. Returns `done` and a map as JSON, or `refused` with the error's kind and message."""
        request = msgspec.json.decode(about, type=CallbackRequest)
        try:
            fields = await self._answer(name, request)
        except CommitConflict as error:
            return [b"refused", b"conflict", error.message.encode()]
        except NotFound as error:
            if error.kind not in ("version", "branch"):
                self.failure = error
            return [b"refused", error.kind.encode(), error.message.encode()]
        except LimnosError as error:
            self.failure = error
            return [b"refused", b"other", error.message.encode()]
        return [b"done", msgspec.json.encode(fields)]

    async def _answer(self, name: str, request: CallbackRequest) -> dict[str, object]:
        ctx, scope, levels, branch = self._ctx, self._scope, self._levels, request.branch or ""
        if name == "list":
            window = VersionWindow(None, request.limit, request.descending)
            views, _ = await versions_list(ctx, scope, levels=levels, branch=branch, window=window)
            return {"versions": [library_version_of(each) for each in views]}
        if name == "describe":
            version = await version_describe(ctx, scope, levels=levels, branch=branch, version=request.version)
            return {"version": library_version_of(version)}
        metadata = msgspec.json.encode(request.metadata or {}, order="sorted").decode()
        new = NewVersion(
            version=request.version or 0,
            path=request.manifest_path,
            size=request.manifest_size,
            e_tag=request.e_tag,
            metadata=metadata,
            branch=branch,
        )
        view = await version_create(ctx, scope, levels=levels, new_version=new)
        self.committed_version = view.version
        return {"version": library_version_of(view)}


def library_version_of(version: VersionView) -> ManagedVersion:
    """Convert a version to the structure that Lance's library expects."""
    return ManagedVersion(version.version, version.path, version.size, version.e_tag)


async def newest_versions_of(
    ctx: Context, table: LanceTable, *, branch: str | None, version: int | None
) -> dict[str, ManagedVersion] | None:
    """Return the newest versions of the main branch and of `branch`, on which a change is based, by branch name; None
    for a table that is not managed.

    Raises NotFound for a missing branch, or a missing version to which the change refers, InvalidTable,
    ServiceUnavailable.
    """
    if not table.record.managed:
        return None
    if version is not None:
        await version_require(ctx, table, manifests=manifests_for(ctx, table, branch=branch or ""), version=version)
    versions: dict[str, ManagedVersion] = {}
    for name in dict.fromkeys(("", branch or "")):
        top = await latest_version(ctx, table, branch=name)
        if top is not None:
            versions[name] = library_version_of(version_view_of(manifests_for(ctx, table, branch=name), top))
        elif name:
            raise NotFound(name, kind="branch")
    return versions
