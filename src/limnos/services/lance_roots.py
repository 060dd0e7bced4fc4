"""The schema that stands for a Lance catalog itself, where a full name needs one: what lies directly in the catalog is shown in it.

May import `access`, `model`, `names` and the scene. A namespace of that name comes first (decision record 0043).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.services.table_formats import least_levels

if TYPE_CHECKING:
    from limnos.names.path import Levels
    from limnos.services.scene import Scene


def stands_for_catalog(scene: Scene, levels: Levels) -> bool:
    """Say whether a schema's name means the catalog."""
    if levels != (scene.defaults.root_schema,) or least_levels(scene) != 1:
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
