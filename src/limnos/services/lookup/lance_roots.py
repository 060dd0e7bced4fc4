"""The schema that stands for a Lance catalog itself, where a full name needs one: what lies directly in the catalog is shown in it.

May import `access`, `model`, `names` and the scene. A namespace of that name comes first (decision record 0043).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.actions import Action
from limnos.model.errors import Unsupported
from limnos.model.kinds import Kind
from limnos.services.request.table_formats import least_levels

if TYPE_CHECKING:
    from limnos.model.entities import Node
    from limnos.names.path import Levels
    from limnos.services.request.scene import Scene


def means_catalog(scene: Scene, levels: Levels) -> bool:
    """Say whether a schema's name is the one that means the catalog where nothing else has it."""
    return levels == (scene.defaults.root_schema,) and least_levels(scene) == 1


def stands_for_catalog(scene: Scene, levels: Levels) -> bool:
    """Say whether a schema's name means the catalog."""
    if not means_catalog(scene, levels):
        return False
    node, _ = scene.find(levels, Kind.NAMESPACE)
    return node is None or node.kind is not Kind.NAMESPACE


def levels_within(scene: Scene, levels: Levels) -> Levels:
    """Return the levels that a schema's name means: none for the catalog itself."""
    return () if stands_for_catalog(scene, levels) else levels


def root_is_shown(scene: Scene) -> bool:
    """Say whether the caller sees that schema: who may list what lies directly in the catalog."""
    name = (scene.defaults.root_schema,)
    return stands_for_catalog(scene, name) and scene.decide(Action.TABLE_LIST, scene.settled.outer).allowed


def root_load(scene: Scene) -> Node:
    """Return the catalog that the schema stands for, to whoever may list what lies directly in it. Raises Forbidden."""
    scene.require(Action.TABLE_LIST, scene.settled.outer)
    return scene.catalog


def no_object(scene: Scene) -> str:
    """Say to who treats that schema as one of its own what to name instead."""
    catalog, name = scene.catalog.name, scene.defaults.root_schema
    return (
        f"Schema {catalog}.{name} shows the tables that lie directly in the catalog {catalog}, and is no object of its own: name the catalog {catalog}, "
        f"or a table as {catalog}.{name}.TABLE"
    )


def require_own(scene: Scene, levels: Levels) -> None:
    """Refuse to change that schema. Raises Unsupported; Forbidden for who may not see it."""
    if stands_for_catalog(scene, levels):
        scene.require(Action.TABLE_LIST, scene.settled.outer)
        raise Unsupported(no_object(scene))
