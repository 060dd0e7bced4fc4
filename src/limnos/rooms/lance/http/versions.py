# SPDX-License-Identifier: Apache-2.0
"""Routes of a table's versions: list, create, describe, delete.

Must not know files: `rooms.lance.services.versions` finds versions in the store or in the table's files.
"""

from __future__ import annotations

import msgspec

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import BadRequest
from limnos.rooms.lance.http.identifiers import IdentifiedBody, body_of, place_of
from limnos.rooms.lance.http.pages import encode_token, page_request_of
from limnos.rooms.lance.services import commits as lance_commits
from limnos.rooms.lance.services import deletions as lance_deletions
from limnos.rooms.lance.services import versions as lance_versions
from limnos.rooms.lance.services.deletions import VersionSpan
from limnos.rooms.lance.services.versions import VersionView, VersionWindow
from limnos.services.lance.table_files import NewVersion
from limnos.services.request.context import Context

SCHEMES = ("v1", "v2")


class VersionListBody(IdentifiedBody):
    """The body of a request to list versions. Clients send no body, only query parameters."""

    branch: str | None = None


class CreateVersion(IdentifiedBody, kw_only=True):
    """The body of a request to commit a version."""

    version: int
    manifest_path: str
    manifest_size: int | None = None
    e_tag: str | None = None
    metadata: dict[str, str] | None = None
    naming_scheme: str | None = None
    branch: str | None = None

    def new_version(self) -> NewVersion:
        """Convert the body to the version to commit. Raises BadRequest for an unknown naming scheme."""
        if self.naming_scheme is not None and self.naming_scheme.lower() not in SCHEMES:
            raise BadRequest(f"naming_scheme must be V1 or V2, not {self.naming_scheme[:20]}")
        metadata = msgspec.json.encode(self.metadata or {}, order="sorted").decode()
        return NewVersion(
            version=self.version,
            path=self.manifest_path,
            size=self.manifest_size,
            e_tag=self.e_tag,
            metadata=metadata,
            branch=self.branch or "",
        )


class DescribeVersion(IdentifiedBody):
    """The body of a request to describe a version; by default the newest version."""

    version: int | None = None
    branch: str | None = None


class VersionRange(msgspec.Struct):
    """A range of versions from `start_version` (inclusive) to `end_version` (exclusive); -1 as the end includes the
    newest.
    """

    start_version: int
    end_version: int


class DeleteVersions(IdentifiedBody, kw_only=True):
    """The body of a request to delete versions."""

    ranges: list[VersionRange]
    branch: str | None = None

    def spans(self) -> tuple[VersionSpan, ...]:
        """Return the ranges of version numbers to delete."""
        return tuple(VersionSpan(each.start_version, each.end_version) for each in self.ranges)


async def versions_list(request: Request, ctx: Context) -> Response:
    """List the versions of a table or of one of its branches, oldest first unless `descending`."""
    body = request.decode(await body_of(request), VersionListBody)
    object_path = place_of(request, ctx, body=body)
    branch = body.branch or request.query("branch") or ""
    views, last = await lance_versions.versions_list(
        ctx, object_path.scope, levels=object_path.levels, branch=branch, window=_window(request)
    )
    answer: dict[str, object] = {"versions": [encode_version(each) for each in views]}
    return json_response(answer if last is None else {**answer, "page_token": encode_token(str(last))})


def _window(request: Request) -> VersionWindow:
    page_request = page_request_of(request)
    if page_request.after and not (
        page_request.after.isascii() and page_request.after.isdigit() and len(page_request.after) < 20
    ):
        raise BadRequest("The page_token was not issued by this server: start again without it")
    after = int(page_request.after) if page_request.after else None
    return VersionWindow(after, page_request.size, request.query_flag("descending", default=False))


def encode_version(version: VersionView) -> dict[str, object]:
    """Encode a version as the protocol's JSON."""
    optional_fields = {"manifest_size": version.size, "e_tag": version.e_tag, "timestamp_millis": version.at_ms}
    body: dict[str, object] = {"version": version.version, "manifest_path": version.path}
    body |= {key: value for key, value in optional_fields.items() if value is not None}
    metadata = msgspec.json.decode(version.metadata)
    return {**body, "metadata": metadata} if metadata else body


async def version_create(request: Request, ctx: Context) -> Response:
    """Commit a version whose manifest its writer has staged."""
    body = request.decode(await body_of(request), CreateVersion)
    object_path = place_of(request, ctx, body=body)
    view = await lance_commits.version_create(
        ctx, object_path.scope, levels=object_path.levels, new_version=body.new_version()
    )
    return json_response({"version": encode_version(view)})


async def versions_delete(request: Request, ctx: Context) -> Response:
    """Delete versions by their numbers."""
    body = request.decode(await body_of(request), DeleteVersions)
    object_path = place_of(request, ctx, body=body)
    pruned_count = await lance_deletions.versions_prune(
        ctx, object_path.scope, levels=object_path.levels, branch=body.branch or "", spans=body.spans()
    )
    return json_response({"deleted_count": pruned_count})


async def version_describe(request: Request, ctx: Context) -> Response:
    """Return a version's number, time, manifest and metadata."""
    body = request.decode(await body_of(request), DescribeVersion)
    object_path = place_of(request, ctx, body=body)
    view = await lance_versions.version_describe(
        ctx, object_path.scope, levels=object_path.levels, branch=body.branch or "", version=body.version
    )
    return json_response({"version": encode_version(view)})
