"""Functions, which stand for all that is a name in a namespace and a record, and policies, in the stories: mutations of them and questions about them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from limnos.access.actions import Action
from limnos.formats.gravitino.functions import Definition, Function
from limnos.formats.gravitino.policies import CUSTOM
from limnos.model.kinds import Kind
from limnos.services.governance import attachments, policies
from limnos.services.governance.attachments import On
from limnos.services.governance.policies import PolicyRequest
from limnos.services.governance.tag_values import Pair, pairs_associate
from limnos.services.lookup import apart, leaves
from limnos.services.lookup.columns import field_ids
from limnos.services.request.properties import Edits
from limnos.services.sqlpp import stored_functions as functions

if TYPE_CHECKING:
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from tests.freshness.world import Levels, World

Work = Coroutine[Any, Any, object]
FUNCTION = Function("scalar", deterministic=True, definitions=(Definition(return_type="long"),))
CONTENT: dict[str, object] = {"supportedObjectTypes": ["CATALOG", "SCHEMA", "TABLE", "VIEW", "FUNCTION"]}


def function_register(world: World, ctx: Context) -> Work:
    """Register a function."""
    scope, path = world.function()
    return functions.function_register(ctx, scope, path=path, comment=None, function=FUNCTION)


def function_alter(world: World, ctx: Context) -> Work:
    """Change a function's comment."""
    scope, path = world.function()
    edits = Edits(comment=world.dice.choice("xyz"))
    return functions.function_alter(ctx, scope, path=path, edits=edits, changes=())


def function_drop(world: World, ctx: Context) -> Work:
    """Drop a function."""
    scope, path = world.function()
    return functions.function_drop(ctx, scope, path=path)


def policy_make(world: World, ctx: Context) -> Work:
    """Make a policy, by the name of a tag."""
    request = PolicyRequest(CUSTOM, CONTENT)
    return policies.policy_create(ctx, metalake=world.metalake(), name=world.tag(), request=request)


def policy_alter(world: World, ctx: Context) -> Work:
    """Rename a policy, and switch it on or off."""
    edits, enabled = Edits(name=world.tag()), world.dice.random() < 0.5
    return policies.policy_alter(ctx, metalake=world.metalake(), name=world.tag(), edits=edits, enabled=enabled)


def policy_drop(world: World, ctx: Context) -> Work:
    """Drop a policy."""
    return apart.apart_drop(ctx, metalake=world.metalake(), kind=Kind.POLICY, name=world.tag())


def policy_associate(world: World, ctx: Context) -> Work:
    """Attach a policy to an object, or detach it."""
    kind, full_name = world.securable()
    adds, removes = ((world.tag(),), ()) if world.dice.random() < 0.7 else ((), (world.tag(),))
    return policies.policies_associate(ctx, On(world.metalake(), kind, full_name), adds=adds, removes=removes)


def tag_pairs(world: World, ctx: Context) -> Work:
    """Give a tag a value at an object, or at a table's column, or take it away."""
    kind, full_name = world.securable()
    if kind is Kind.TABLE and world.dice.random() < 0.6:
        kind, full_name = Kind.COLUMN, f"{full_name}.x"
    pairs = (Pair(world.tag(), world.dice.choice(("1", "2", None))),)
    adds, removes = (pairs, ()) if world.dice.random() < 0.7 else ((), pairs)
    return pairs_associate(ctx, On(world.metalake(), kind, full_name), adds=adds, removes=removes)


MUTATIONS: dict[Callable[[World, Context], Work], int] = {
    function_register: 5, function_alter: 2, function_drop: 2, policy_make: 3, policy_alter: 2, policy_drop: 1,
    policy_associate: 4, tag_pairs: 4,
}  # fmt: skip


def asked(path: Levels, table: Levels) -> tuple[tuple[str, Callable[[Scene], object]], ...]:
    """What is asked of a function by its path, and of a table's policies."""

    def policies_on(scene: Scene) -> object:
        found = scene.look_up(Kind.TABLE, table, Action.TABLE_LOAD)
        return attachments.attached_of(scene, found.chain, kind=Kind.POLICY)

    def tags_on_column(scene: Scene) -> object:
        found = scene.look_up(Kind.TABLE, table, Action.TABLE_LOAD)
        field_id = field_ids(scene, found.entity).get("x", attachments.OWN)
        return attachments.attached_of(scene, found.chain, kind=Kind.TAG, field_id=field_id)

    return (
        (f"function {path}", lambda scene: leaves.leaf_load(scene, path, kind=Kind.FUNCTION)),
        (f"functions in {path[:-1]}", lambda scene: leaves.leaf_names(scene, path[:-1], kind=Kind.FUNCTION)),
        (f"policies of {table}", policies_on),
        (f"tags of {table}'s column", tags_on_column),
    )
