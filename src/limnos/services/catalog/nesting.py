# SPDX-License-Identifier: Apache-2.0
"""Nesting migration: renames and moves a catalog's namespaces so that they can nest.

Operations: check, plan, migrate, undo, confirm.

Must not know any wire format. A migration has steps, and after each step all names are valid for every client. First,
names that contain the separator are renamed in place. Then, in a flat catalog, the property is set. Then namespaces
whose names can be split move to their paths. A batch is one transaction (`nesting_steps`), so after a crash any node
can continue.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from limnos.access.actions import Action
from limnos.model.decisions import Decision
from limnos.model.entities import Node
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.permits import Permit
from limnos.model.records import CatalogRecord
from limnos.names.logical import SEPARATORS_ALLOWED, check_separator
from limnos.names.parts import Levels, check_part, quote_for_message
from limnos.services.catalog import nesting_steps
from limnos.services.request.catalog_traits import is_nested
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.objects.nesting import LEFT, PLANNED, RENAMED, changes_read, conflicts_read, migration_read
from limnos.store.objects.nesting import NESTED as ON_PATH

SHOWN_MAX: Final = 1000
REPLACEMENT_MAX: Final = 16
_STEPS: Final = {PLANNED: "planned", RENAMED: "renamed", ON_PATH: "nested", LEFT: "left"}


class NestingCheck(NamedTuple):
    """The result of a check: whether namespaces nest, the count of names with the separator, the first of these names,
    and separators that no name contains.
    """

    nested: bool
    separator: str
    conflicts: int
    names: tuple[str, ...]
    free: tuple[str, ...]


class PlannedRename(NamedTuple):
    """The plan for one namespace: its new name, then its path if it has one. `mark` is the page token of the page after
    it.
    """

    name: str
    new_name: str
    path: Levels | None
    step: str
    mark: int


def _catalog(request_view: RequestView) -> Node:
    """Return the catalog, for a caller who may alter it. Raises NotFound, NotInUse, PermissionDenied."""
    request_view.require(Action.CATALOG_ALTER, request_view.settled.outer)
    request_view.require_in_use()
    return request_view.catalog


async def nesting_check(
    ctx: Context, scope: RequestScope, *, separator: str | None, limit: int = SHOWN_MAX
) -> NestingCheck:
    """Find the namespace names that contain a separator: the given one, else the server's. Raises NotFound, NotInUse,
    PermissionDenied, and InvalidName for a separator that is not allowed.
    """
    requested = _separator(ctx, separator)

    async def read(catalog: Node) -> NestingCheck:
        count, conflicts = await ctx.look_up(lambda: conflicts_read(catalog.id, requested, limit=limit))
        free = []
        for other in SEPARATORS_ALLOWED if count else ():
            current, _ = await ctx.look_up(lambda other=other: conflicts_read(catalog.id, other, limit=1))  # type: ignore[misc]
            free += [] if current else [other]
        nested = is_nested(cast("CatalogRecord", catalog.record))
        return NestingCheck(
            nested=nested,
            separator=requested,
            conflicts=count,
            names=tuple(each.name for each in conflicts),
            free=tuple(free),
        )

    _, check = await ctx.read_confirmed(scope, _catalog, work=read, identity=_id_of)
    return check


def _id_of(catalog: Node) -> int:
    return catalog.id


async def nesting_load(
    ctx: Context, scope: RequestScope, *, after: int = 0, limit: int = SHOWN_MAX
) -> tuple[nesting_steps.NestingProgress, list[PlannedRename]]:
    """Return the progress of a catalog's migration, and a page of its renames. Raises NotFound, also if there is no
    migration, NotInUse, PermissionDenied.
    """

    async def read(catalog: Node) -> tuple[nesting_steps.NestingProgress, list[PlannedRename]]:
        progress = await _progress(ctx, catalog)
        rows = await ctx.look_up(lambda: changes_read(catalog.id, after=after, limit=limit))
        return progress, [
            PlannedRename(
                name=each.old_name, new_name=each.new_name, path=each.path, step=_STEPS[each.step], mark=each.node_id
            )
            for each in rows
        ]

    _, migration = await ctx.read_confirmed(scope, _catalog, work=read, identity=_id_of)
    return migration


async def nesting_plan(
    ctx: Context, scope: RequestScope, *, separator: str | None = None, replacement: str = "_", nested: bool = True
) -> nesting_steps.NestingProgress:
    """Plan the renames of names that contain the separator; replaces an older plan and renames nothing yet.

    A long plan has to be continued.

    Args:
        ctx: The request.
        scope: The catalog.
        separator: The separator; None for the server's.
        replacement: Replaces each separator in a name.
        nested: Whether a flat catalog's namespaces will nest. A name whose parts are valid names then moves to that
            path.

    Raises:
        BadRequest: A migration runs or could be undone, or the replacement is not allowed.
        InvalidName: The separator or the replacement is not allowed.
        NotFound: The catalog is missing.
        NotInUse: The catalog or metalake is disabled.
        PermissionDenied: The caller may not alter the catalog.
    """
    requested = _separator(ctx, separator)
    _check_replacement(replacement, requested)

    def decide(request_view: RequestView) -> Permit[nesting_steps.NestingBegin]:
        step, decision = _step(request_view, "planned")
        flat = not is_nested(request_view.catalog_record)
        return request_view.permit(nesting_steps.NestingBegin(step, requested, replacement, nested and flat), decision)

    return await ctx.write(scope, decide, nesting_steps.nesting_begin)


async def nesting_continue(ctx: Context, scope: RequestScope, *, to: str) -> nesting_steps.NestingProgress:
    """Execute the next batch towards a goal: `planned`, `migrated` or `undone`. Call it until the goal is reached.

    Raises NotFound, also without a plan, NotInUse, PermissionDenied, BadRequest if the goal cannot be reached from the
    present state, InvalidName if other names contain the server's present separator.
    """
    if to not in nesting_steps.GOALS:
        raise BadRequest(
            f"{quote_for_message(to)} is not a target state of names: use one of {', '.join(nesting_steps.GOALS)}"
        )
    _, progress = await ctx.read_confirmed(
        scope, _catalog, work=lambda catalog: _progress(ctx, catalog), identity=_id_of
    )
    switches = progress.migration.state in nesting_steps.SWITCHES

    def decide(request_view: RequestView) -> Permit[nesting_steps.NestingStep]:
        step, decision = _step(request_view, to)
        return (
            request_view.permit(step, decision, zone=request_view.metalake.id)
            if switches
            else request_view.permit(step, decision)
        )

    return await ctx.write(scope, decide, nesting_steps.nesting_switch if switches else nesting_steps.nesting_batch)


async def nesting_confirm(ctx: Context, scope: RequestScope) -> None:
    """Delete a plan, or the record by which a migration could be undone. Raises NotFound, BadRequest while one runs."""

    def decide(request_view: RequestView) -> Permit[nesting_steps.NestingEnd]:
        command = nesting_steps.NestingEnd(_catalog(request_view))
        return request_view.permit(command, request_view.require(Action.CATALOG_ALTER, request_view.settled.outer))

    await ctx.write(scope, decide, nesting_steps.nesting_end)


def _step(request_view: RequestView, to: str) -> tuple[nesting_steps.NestingStep, Decision]:
    """Return the command for the next step towards the goal `to`, and the decision that the caller may alter the
    catalog.
    """
    catalog = _catalog(request_view)
    decision = request_view.require(Action.CATALOG_ALTER, request_view.settled.outer)
    return (
        nesting_steps.NestingStep(
            catalog=catalog,
            to=to,
            space=request_view.space(Kind.NAMESPACE),
            owner_id=request_view.maker_id,
            separator=request_view.defaults.separator,
        ),
        decision,
    )


async def _progress(ctx: Context, catalog: Node) -> nesting_steps.NestingProgress:
    result = await ctx.look_up(lambda: migration_read(catalog.id))
    if result is None:
        raise nesting_steps.no_plan(catalog)
    return nesting_steps.progress_of(*result)


def _separator(ctx: Context, separator: str | None) -> str:
    defaults = ctx.services.defaults
    if separator is None:
        return defaults.separator
    return check_separator(separator, policy="unrestricted")


def _check_replacement(replacement: str, separator: str) -> None:
    check_part(replacement)
    if separator in replacement or "." in replacement or len(replacement) > REPLACEMENT_MAX:
        raise BadRequest(
            f"{quote_for_message(replacement)} cannot replace {quote_for_message(separator)}: give at most"
            f" {REPLACEMENT_MAX} characters without it, and no dot"
        )
