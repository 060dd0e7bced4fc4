# SPDX-License-Identifier: Apache-2.0
"""Routes of a table's tags and branches.

Has no business rules. LanceDB's remote clients expect bare tags, and the protocol wraps them in a field.
"""

from __future__ import annotations

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.rooms.lance.http.identifiers import IdentifiedBody, body_of, is_remote, place_of
from limnos.rooms.lance.http.pages import encode_token, page_request_of
from limnos.rooms.lance.services import references as lance_references
from limnos.rooms.lance.services.references import ReferenceTarget, names_of
from limnos.rooms.lance.sources.questions import BranchReference, TagReference
from limnos.services.request.context import Context


class ReferenceListBody(IdentifiedBody):
    """The body of a request to list tags or branches; clients send none."""


class TagBody(IdentifiedBody, kw_only=True):
    """The body of a request about one tag."""

    tag: str


class PutTag(IdentifiedBody, kw_only=True):
    """The body of a request to create a tag, or to move it to another version."""

    tag: str
    version: int
    branch: str | None = None


class CreateBranch(IdentifiedBody, kw_only=True):
    """The body of a request to create a branch."""

    name: str
    from_branch: str | None = None
    from_version: int | None = None


class BranchNameBody(IdentifiedBody, kw_only=True):
    """The body of a request about one branch."""

    name: str


async def tags_list(request: Request, ctx: Context) -> Response:
    """List a table's tags, by name."""
    body = request.decode(await body_of(request), ReferenceListBody)
    object_path, page_request = place_of(request, ctx, body=body), page_request_of(request)
    references = (await lance_references.references_list(ctx, object_path.scope, levels=object_path.levels)).tags
    names, last = names_of(references, after=page_request.after, limit=page_request.size)
    entries = {name: _encode_tag(references[name]) for name in names}
    if is_remote(request):
        return json_response(entries)
    return json_response({"tags": entries} | ({} if last is None else {"page_token": encode_token(last)}))


def _encode_tag(tag: TagReference) -> dict[str, object]:
    body = {"version": tag.version, "manifestSize": tag.manifest_size or 0, "branch": tag.branch}
    return {key: value for key, value in body.items() if value is not None}


async def tag_version(request: Request, ctx: Context) -> Response:
    """Return the version that a tag points to, and its branch."""
    body = request.decode(await body_of(request), TagBody)
    object_path = place_of(request, ctx, body=body)
    reference = await lance_references.tag_find(ctx, object_path.scope, levels=object_path.levels, name=body.tag)
    return json_response(
        {"version": reference.version} | ({} if reference.branch is None else {"branch": reference.branch})
    )


async def tag_create(request: Request, ctx: Context) -> Response:
    """Create a tag for a version of the table. 409 if the name is taken."""
    return await _put(request, ctx, replaces=False)


async def tag_update(request: Request, ctx: Context) -> Response:
    """Point a tag to another version."""
    return await _put(request, ctx, replaces=True)


async def _put(request: Request, ctx: Context, *, replaces: bool) -> Response:
    body = request.decode(await body_of(request), PutTag)
    object_path = place_of(request, ctx, body=body)
    target = ReferenceTarget(body.version, body.branch or "")
    await lance_references.tag_put(
        ctx, object_path.scope, levels=object_path.levels, name=body.tag, target=target, replaces=replaces
    )
    return json_response({})


async def tag_delete(request: Request, ctx: Context) -> Response:
    """Delete a tag, but not the version that it points to."""
    body = request.decode(await body_of(request), TagBody)
    object_path = place_of(request, ctx, body=body)
    await lance_references.tag_drop(ctx, object_path.scope, levels=object_path.levels, name=body.tag)
    return json_response({})


async def branches_list(request: Request, ctx: Context) -> Response:
    """List a table's branches, by name. The main branch always exists and is not listed."""
    body = request.decode(await body_of(request), ReferenceListBody)
    object_path, page_request = place_of(request, ctx, body=body), page_request_of(request)
    references = (await lance_references.references_list(ctx, object_path.scope, levels=object_path.levels)).branches
    names, last = names_of(references, after=page_request.after, limit=page_request.size)
    answer: dict[str, object] = {"branches": {name: _encode_branch(references[name]) for name in names}}
    return json_response(answer if last is None else {**answer, "page_token": encode_token(last)})


def _encode_branch(branch: BranchReference) -> dict[str, object]:
    body = {
        "parentVersion": branch.parent_version,
        "parentBranch": branch.parent_branch,
        "createAt": branch.created_at or 0,
        "manifestSize": branch.manifest_size or 0,
        "metadata": branch.metadata or None,
    }
    return {key: value for key, value in body.items() if value is not None}


async def branch_create(request: Request, ctx: Context) -> Response:
    """Create a branch from a version of the table. 409 if the name is taken."""
    body = request.decode(await body_of(request), CreateBranch)
    object_path = place_of(request, ctx, body=body)
    target = ReferenceTarget(body.from_version, body.from_branch or "")
    await lance_references.branch_make(ctx, object_path.scope, levels=object_path.levels, name=body.name, target=target)
    return json_response({})


async def branch_delete(request: Request, ctx: Context) -> Response:
    """Delete a branch with its files."""
    body = request.decode(await body_of(request), BranchNameBody)
    object_path = place_of(request, ctx, body=body)
    await lance_references.branch_drop(ctx, object_path.scope, levels=object_path.levels, name=body.name)
    return json_response({})
