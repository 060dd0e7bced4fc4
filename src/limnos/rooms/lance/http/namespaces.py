# SPDX-License-Identifier: Apache-2.0
"""Namespace routes: create, list, describe, drop, exists, and the tables of a namespace.

Has no business rules. The root namespace contains the catalogs that the caller may use; it cannot be changed.
"""

from __future__ import annotations

from typing import cast

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import AlreadyExists, BadRequest, NotFound
from limnos.rooms.lance.http.identifiers import IdentifiedBody, body_of, place_of
from limnos.rooms.lance.http.pages import page, page_request_of
from limnos.rooms.lance.services.namespaces import lance_namespace_create, lance_namespace_drop
from limnos.rooms.lance.services.table_lists import lance_namespace_load, lance_namespaces_list, tables_list
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.request.browsing import catalog_names
from limnos.services.request.context import Context
from limnos.services.request.name_pages import PageRequest
from limnos.services.request.request_scope import RequestScope

CREATE_MODES = ("create", "existok", "overwrite")
DROP_MODES = ("fail", "skip")
BEHAVIORS = ("restrict", "cascade")


class CreateNamespace(IdentifiedBody):
    """The body of a request to create a namespace."""

    mode: str | None = None
    properties: dict[str, str] | None = None


class DropNamespace(IdentifiedBody):
    """The body of a request to drop a namespace."""

    mode: str | None = None
    behavior: str | None = None


class NamespaceBody(IdentifiedBody):
    """The body of a request with only the namespace's identifier."""


def parse_choice(text: str | None, words: tuple[str, ...], *, field: str) -> str:
    """Parse an enumeration value, one of `words`, ignoring case and underscores. The first of them is the default.

    Raises BadRequest, which names `field`, for any other value.
    """
    if text is None or text == "":
        return words[0]
    word = text.lower().replace("_", "")
    if word not in words:
        raise BadRequest(f"{field} must be one of {', '.join(words)}, not {text[:40]}")
    return word


async def namespace_create(request: Request, ctx: Context) -> Response:
    """Create a namespace; directly below the root, a catalog for Lance tables. Its parent must exist."""
    data = await body_of(request)
    body = request.decode(data, CreateNamespace)
    object_path = place_of(request, ctx, body=body)
    mode = parse_choice(body.mode, CREATE_MODES, field="mode")
    if object_path.is_root:
        raise AlreadyExists("Namespace already exists: the root namespace always exists", kind="namespace")
    properties = await lance_namespace_create(
        ctx, object_path.scope, levels=object_path.levels, properties=body.properties or {}, mode=mode
    )
    return json_response({"properties": properties})


async def namespaces_page(request: Request, ctx: Context) -> Response:
    """List the names of the children of a namespace. For the root, these are the catalogs that the caller may use or
    that contain an object which the caller may use.
    """
    object_path, page_request = place_of(request, ctx), page_request_of(request)
    if object_path.is_root:
        return json_response(await _catalogs(ctx, object_path.scope, page_request=page_request))
    table_names_page = await lance_namespaces_list(
        ctx, object_path.scope, levels=object_path.levels, page_request=page_request
    )
    return json_response(
        page("namespaces", table_names_page.names, last=table_names_page.last if page_request.size != 0 else None)
    )


async def _catalogs(ctx: Context, scope: RequestScope, *, page_request: PageRequest) -> dict[str, object]:
    entries = await catalog_names(ctx, cast("str", scope.metalake))
    names = [name for name in entries if name > page_request.after]
    page_names = names if page_request.size is None else names[: page_request.size]
    return page("namespaces", page_names, last=page_names[-1] if page_names and len(page_names) < len(names) else None)


async def namespace_describe(request: Request, ctx: Context) -> Response:
    """Return the properties of a namespace that are visible to the caller."""
    data = await body_of(request)
    body = request.decode(data, NamespaceBody)
    object_path = place_of(request, ctx, body=body)
    if object_path.is_root:
        await ctx.read(object_path.scope, catalogs_list)
        return json_response({"properties": {}})
    return json_response({"properties": await lance_namespace_load(ctx, object_path.scope, levels=object_path.levels)})


async def namespace_exists(request: Request, ctx: Context) -> Response:
    """Check whether a namespace exists: 200 without a body, or 404."""
    await namespace_describe(request, ctx)
    return Response(200, b"", ())


async def namespace_drop(request: Request, ctx: Context) -> Response:
    """Drop an empty namespace; with `behavior` `cascade` also everything in it. With `mode` `skip` a missing namespace
    is not an error.
    """
    data = await body_of(request)
    body = request.decode(data, DropNamespace)
    object_path = place_of(request, ctx, body=body)
    mode = parse_choice(body.mode, DROP_MODES, field="mode")
    cascade = parse_choice(body.behavior, BEHAVIORS, field="behavior") == "cascade"
    if object_path.is_root:
        raise BadRequest("The root namespace always exists: name a namespace in it")
    try:
        properties = await lance_namespace_drop(ctx, object_path.scope, levels=object_path.levels, cascade=cascade)
    except NotFound as error:
        if mode != "skip" or error.kind not in ("catalog", "namespace"):
            raise
        return json_response({})
    return json_response({"properties": properties})


async def namespace_tables(request: Request, ctx: Context) -> Response:
    """List the names of the Lance tables directly in a namespace; without `include_declared` only those with data."""
    object_path, page_request = place_of(request, ctx), page_request_of(request)
    declared = request.query_flag("include_declared", default=True)
    if object_path.is_root:
        await ctx.read(object_path.scope, catalogs_list)
        return json_response({"tables": []})
    table_names_page = await tables_list(
        ctx, object_path.scope, levels=object_path.levels, page_request=page_request, declared=declared
    )
    return json_response(
        page("tables", table_names_page.names, last=table_names_page.last if page_request.size != 0 else None)
    )
