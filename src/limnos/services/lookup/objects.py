"""Securable objects by kind and full name: what grants and owners are about.

May import the rooms below. A full name may have several readings, as names may hold dots; what is live decides.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, cast

from limnos.model.decisions import Link
from limnos.model.errors import BadRequest, NotFound, Unsupported
from limnos.model.kind_table import row_of
from limnos.model.kinds import LEAVES, SECURABLE, Form, Home, Kind
from limnos.model.records import NODE_RECORDS
from limnos.names import fullname
from limnos.names.logical import LogicalCodec
from limnos.services.federation.shadows import Unshadowed, has_shadows
from limnos.services.lookup.lance_roots import means_catalog, no_object, stands_for_catalog
from limnos.services.lookup.nested import nests
from limnos.services.request.scene import Scope
from limnos.view.cold import need
from limnos.view.keys import role_key

if TYPE_CHECKING:
    from limnos.access.actions import Action
    from limnos.model.decisions import Chain, Decision
    from limnos.model.entities import Node, RoleEntity
    from limnos.names.fullname import FullName
    from limnos.names.logical import Policy
    from limnos.services.request.defaults import Defaults
    from limnos.services.request.scene import Found, Scene

_WORDS = {word: kind for kind in SECURABLE for word in (kind.word, row_of(kind).gravitino or kind.word)}


class Target(NamedTuple):
    """A live securable object: `node` is None for a role; `parent` contains it; `catalog_type` is its catalog's."""

    id: int
    kind: Kind
    chain: Chain
    node: Node | None
    parent: Node | None
    catalog_type: str | None


def parse_kind(text: str) -> Kind:
    """Read a securable object's type, in any case; Gravitino says schema where we say namespace."""
    kind = _WORDS.get(text.lower())
    if kind is None:
        raise BadRequest(f"Unknown object type {text}: use one of {', '.join(sorted(_WORDS))}")
    return kind


def scope_for(metalake: str, kind: Kind, full_name: str) -> Scope:
    """Return the scope an object is in, from its full name."""
    if kind is Kind.CATALOG or kind.home is Home.CATALOG:
        return Scope(metalake, fullname.catalog_of(full_name))
    return Scope(metalake)


def codec_of(scene: Scene) -> LogicalCodec:
    """Return how namespaces are spelled in this catalog."""
    nested = scene.settled.catalog is None or nests(scene.catalog_record)
    return codec_outside(scene.defaults, nested=nested)


def codec_outside(defaults: Defaults, *, nested: bool = True) -> LogicalCodec:
    """Return how namespaces are spelled where no catalog's scene is at hand."""
    return _codec(defaults.separator, policy=defaults.separator_policy, nested=nested)


@cache
def _codec(separator: str, *, policy: str, nested: bool) -> LogicalCodec:
    """Make a codec: one for each separator, which the settings give, and for catalogs with and without nested namespaces."""
    return LogicalCodec(separator, cast("Policy", policy), nested)


def absent(scene: Scene, kind: Kind, *, full_name: str) -> NotFound:
    """Say that a securable object does not exist, as `target_find` does."""
    if kind is Kind.CATALOG:
        return NotFound(f"Catalog {full_name} does not exist in metalake {scene.metalake.name}", kind="catalog")
    if kind is Kind.ROLE or kind.form is Form.APART:
        return scene.missing(kind, (full_name,))
    return NotFound(f"{kind.word.capitalize()} {full_name} does not exist", kind="object")


def target_find(scene: Scene, kind: Kind, full_name: str, codec: LogicalCodec) -> Target:
    """Find a securable object. Raises NotFound, InvalidName for an ambiguous name, Unsupported for a schema that is no object."""
    if kind is Kind.METALAKE:
        if full_name != scene.metalake.name:
            raise NotFound(f"Metalake {full_name} is not the one this request is about", kind="object")
        return Target(scene.metalake.id, kind, scene.settled.outer, scene.metalake, None, None)
    if kind is Kind.ROLE:
        role = role_require(scene, full_name)
        return Target(role.id, kind, (Link(role.id, kind, role.name), *scene.settled.outer), None, None, None)
    if kind.form is Form.APART and kind in NODE_RECORDS:
        node, chain = scene.find_outside(kind, (full_name,))
        if node is None:
            raise scene.missing(kind, (full_name,))
        return Target(node.id, kind, chain, node, scene.metalake, None)
    if kind is Kind.CATALOG:
        next(fullname.candidates(full_name, fullname.CATALOG, codec=codec))  # refuses what goes on after the catalog
        if scene.settled.catalog is None:
            raise absent(scene, kind, full_name=full_name)
        catalog_type = scene.catalog_record.type
        return Target(scene.catalog.id, kind, scene.settled.outer, scene.catalog, scene.metalake, catalog_type)
    if kind is Kind.NAMESPACE or kind in LEAVES:
        return _in_catalog(scene, kind, full_name, codec)
    if kind is Kind.COLUMN:
        raise BadRequest(
            "A column has tags, policies and statistics of its own, and for the rest what its table has: name the table"
        )
    raise BadRequest(f"Objects of type {kind.word} do not exist here yet")


def target_require(scene: Scene, kind: Kind, full_name: str, codec: LogicalCodec, *actions: Action) -> Target:
    """Find a securable object for who may do any of the actions to it; the last one speaks in a refusal.

    Raises NotFound, Unsupported, Forbidden. A missing object is refused in the words that an existing one would be.
    """
    try:
        target = target_find(scene, kind, full_name, codec)
    except (NotFound, Unsupported) as error:
        if kind is not Kind.METALAKE:
            _require_any(scene, _absent_chain(scene, kind, full_name, codec), actions)
        if isinstance(error, Unshadowed):
            error.allowed = lambda scene, chain: _require_any(scene, chain, actions)
        raise
    _require_any(scene, target.chain, actions)
    return target


def _require_any(scene: Scene, chain: Chain, actions: tuple[Action, ...]) -> Decision:
    for action in actions[:-1]:
        decision = scene.decide(action, chain)
        if decision.allowed:
            return decision
    return scene.require(actions[-1], chain)


def _absent_chain(scene: Scene, kind: Kind, full_name: str, codec: LogicalCodec) -> Chain:
    """Return the chain that a missing object would have: the nearest existing container of its first reading."""
    if kind.form is Form.APART:
        return (Link.absent(kind, full_name), *scene.settled.outer[-1:])
    if kind is Kind.CATALOG:
        return scene.settled.outer
    parts = fullname.SCHEMA if kind is Kind.NAMESPACE else fullname.OBJECT
    levels = _levels(next(iter(fullname.candidates(full_name, parts, codec=codec))))
    return (Link.absent(kind, levels[-1]), *scene.find(levels, kind)[1])


def _in_catalog(scene: Scene, kind: Kind, full_name: str, codec: LogicalCodec) -> Target:
    def exists(reading: FullName) -> bool:
        return _found(scene, reading, kind=kind)[0] is not None

    parts = fullname.SCHEMA if kind is Kind.NAMESPACE else fullname.OBJECT
    reading = fullname.resolve(full_name, exists, kind_levels=parts, codec=codec)
    if reading is None:
        if kind is Kind.NAMESPACE and any(
            stands_for_catalog(scene, each.levels) for each in fullname.candidates(full_name, parts, codec=codec)
        ):
            raise Unsupported(no_object(scene))
        missing = f"{kind.word.capitalize()} {full_name} does not exist"
        if has_shadows(scene, kind):
            readings = tuple(_levels(each) for each in fullname.candidates(full_name, parts, codec=codec))
            raise Unshadowed(missing, scope=scene.scope, object_kind=kind, readings=readings)
        raise NotFound(missing, kind="object")
    node, chain = _found(scene, reading, kind=kind)
    if node is None or node.kind is not kind:
        missing = f"{kind.word.capitalize()} {full_name} does not exist"
        if has_shadows(scene, kind):  # what stands there was of another kind
            raise Unshadowed(missing, scope=scene.scope, object_kind=kind, readings=(_levels(reading),))
        raise NotFound(missing, kind="object")
    parent = scene.catalog if node.parent_id == scene.catalog.id else scene.node(node.parent_id)
    return Target(node.id, kind, chain, node, parent, scene.catalog_record.type)


def _found(scene: Scene, reading: FullName, *, kind: Kind) -> tuple[Node | None, Chain]:
    """Find what a reading names; in the schema that stands for a Lance catalog itself also what lies directly in that."""
    node, chain = scene.find(_levels(reading), kind)
    if node is not None or not reading.name or not means_catalog(scene, reading.levels):
        return node, chain
    return scene.find((reading.name,), kind)


def _levels(reading: FullName) -> tuple[str, ...]:
    return reading.levels if reading.name is None else (*reading.levels, reading.name)


def role_find(scene: Scene, name: str) -> RoleEntity | None:
    """Return a role by name."""
    return need(scene.view, role_key(scene.metalake.id, name), zone=scene.metalake.id)


def role_require(scene: Scene, name: str) -> RoleEntity:
    """Return a role by name. Raises NotFound."""
    found = role_find(scene, name)
    if found is None:
        raise scene.missing(Kind.ROLE, (name,))
    return found


def role_look_up(scene: Scene, name: str, action: Action) -> Found[RoleEntity]:
    """Find a role for who may do the action to it. Raises NotFound, Forbidden."""
    scene.require_in_use()
    return scene.judge(role_find(scene, name), Kind.ROLE, name, action)
