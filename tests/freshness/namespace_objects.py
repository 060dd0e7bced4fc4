# SPDX-License-Identifier: Apache-2.0
"""Random mutations of functions and policies for the freshness tests, and questions about them.

Functions represent all kinds of namespace objects.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from limnos.access.actions import Action
from limnos.formats.gravitino.functions import Function, FunctionDefinition, FunctionImplementation
from limnos.formats.gravitino.policies import CUSTOM
from limnos.model.kinds import Kind
from limnos.services.catalog import stored_functions as functions
from limnos.services.governance import attachments, policies
from limnos.services.governance.policies import PolicyRequest
from limnos.services.governance.tag_values import TagValuePair, pairs_associate
from limnos.services.lookup import metalake_objects, namespace_objects
from limnos.services.lookup.columns import field_ids
from limnos.services.lookup.securables import AttachmentTarget
from limnos.services.request.property_edits import PropertyEdits

if TYPE_CHECKING:
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView
    from tests.freshness.world import Levels, StoryWorld

Work = Coroutine[Any, Any, object]
SQL = FunctionImplementation(language="SQL", runtime="SPARK", sql="1")
FUNCTION = Function("scalar", deterministic=True, definitions=(FunctionDefinition(return_type="long", impls=[SQL]),))
CONTENT: dict[str, object] = {"supportedObjectTypes": ["CATALOG", "SCHEMA", "TABLE", "VIEW", "FUNCTION"]}


def function_register(world: StoryWorld, ctx: Context) -> Work:
    """Register a function."""
    scope, path = world.function()
    return functions.function_register(ctx, scope, path=path, comment=None, function=FUNCTION)


def function_alter(world: StoryWorld, ctx: Context) -> Work:
    """Change a function's comment."""
    scope, path = world.function()
    edits = PropertyEdits(comment=world.dice.choice("xyz"))
    return functions.function_alter(ctx, scope, path=path, edits=edits, changes=())


def function_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a function."""
    scope, path = world.function()
    return functions.function_drop(ctx, scope, path=path)


def policy_make(world: StoryWorld, ctx: Context) -> Work:
    """Create a policy with a tag's name."""
    request = PolicyRequest(CUSTOM, CONTENT)
    return policies.policy_create(ctx, metalake=world.metalake(), name=world.tag(), request=request)


def policy_alter(world: StoryWorld, ctx: Context) -> Work:
    """Rename a policy, and switch it on or off."""
    edits, enabled = PropertyEdits(name=world.tag()), world.dice.random() < 0.5
    return policies.policy_alter(ctx, metalake=world.metalake(), name=world.tag(), edits=edits, enabled=enabled)


def policy_drop(world: StoryWorld, ctx: Context) -> Work:
    """Drop a policy."""
    return metalake_objects.metalake_object_drop(ctx, metalake=world.metalake(), kind=Kind.POLICY, name=world.tag())


def policy_associate(world: StoryWorld, ctx: Context) -> Work:
    """Attach a policy to an object, or detach it."""
    kind, full_name = world.securable()
    adds, removes = ((world.tag(),), ()) if world.dice.random() < 0.7 else ((), (world.tag(),))
    return policies.policies_associate(
        ctx, AttachmentTarget(world.metalake(), kind, full_name), adds=adds, removes=removes
    )


def tag_pairs(world: StoryWorld, ctx: Context) -> Work:
    """Add a tag's value to an object or a table's column, or remove it."""
    kind, full_name = world.securable()
    if kind is Kind.TABLE and world.dice.random() < 0.6:
        kind, full_name = Kind.COLUMN, f"{full_name}.x"
    pairs = (TagValuePair(world.tag(), world.dice.choice(("1", "2", None))),)
    adds, removes = (pairs, ()) if world.dice.random() < 0.7 else ((), pairs)
    return pairs_associate(ctx, AttachmentTarget(world.metalake(), kind, full_name), adds=adds, removes=removes)


MUTATIONS: dict[Callable[[StoryWorld, Context], Work], int] = {
    function_register: 5,
    function_alter: 2,
    function_drop: 2,
    policy_make: 3,
    policy_alter: 2,
    policy_drop: 1,
    policy_associate: 4,
    tag_pairs: 4,
}


def list_object_questions(path: Levels, table: Levels) -> tuple[tuple[str, Callable[[RequestView], object]], ...]:
    """Return questions about a function by its path, and about a table's policies."""

    def policies_on(request_view: RequestView) -> object:
        table_lookup = request_view.look_up(Kind.TABLE, table, Action.TABLE_LOAD)
        return attachments.attachments_of(request_view, table_lookup.chain, kind=Kind.POLICY)

    def tags_on_column(request_view: RequestView) -> object:
        table_lookup = request_view.look_up(Kind.TABLE, table, Action.TABLE_LOAD)
        field_id = field_ids(request_view, table_lookup.entity).get("x", attachments.OWN)
        return attachments.attachments_of(request_view, table_lookup.chain, kind=Kind.TAG, field_id=field_id)

    return (
        (
            f"function {path}",
            lambda request_view: namespace_objects.namespace_object_load(request_view, path, kind=Kind.FUNCTION),
        ),
        (
            f"functions in {path[:-1]}",
            lambda request_view: namespace_objects.namespace_object_names(request_view, path[:-1], kind=Kind.FUNCTION),
        ),
        (f"policies of {table}", policies_on),
        (f"tags of {table}'s column", tags_on_column),
    )
