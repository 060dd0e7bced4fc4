"""Tables of several formats in one tree: which one a catalog holds, and how a table is refused where another one is served.

May import `access`, `model`, `names` and the scene. Knows no wire format. A catalog's provider says what its tables are, so that no
protocol has to look at each of them; a table that another protocol serves does not exist for this one, by its lists and by its
answers alike. Decision record 0043.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from limnos.model.decisions import Link
from limnos.model.errors import BadRequest, NotFound, Unsupported
from limnos.model.kind_table import HELD, is_in_any_catalog
from limnos.model.kinds import FEDERATED, Kind
from limnos.names.iceberg import render
from limnos.services.request import catalog_traits
from limnos.services.request.catalog_traits import NO_TABLES

if TYPE_CHECKING:
    from limnos.access.actions import Action
    from limnos.names.path import Levels
    from limnos.services.request.scene import Scene

ICEBERG: Final = catalog_traits.ICEBERG
LANCE: Final = "lance"
SOURCE: Final = catalog_traits.SOURCE
_SERVED: Final = {
    ICEBERG: "an Iceberg table: open it over Iceberg REST",
    LANCE: "a Lance table: open it over Lance REST",
    SOURCE: "a table of another system: look at it over Gravitino REST, and open it there",
}
_HELD: Final = {
    ICEBERG: "Iceberg tables, which are made over Iceberg REST",
    LANCE: "Lance tables, which are made over Lance REST",
    SOURCE: "tables of another system, which are made there or over Gravitino REST",
}


def format_of(scene: Scene) -> str:
    """Return the format of the tables in the scene's catalog, `NO_TABLES` where it holds none."""
    return scene.traits.table_format


def is_sourced(scene: Scene) -> bool:
    """Say whether the scene's catalog shows what an outside system has."""
    traits = scene.settled.traits
    return traits is not None and traits.is_sourced


class Elsewhere(Unsupported):
    """What was asked of the tree is another system's: whoever can ask that goes on there."""

    def __init__(self, message: str, *, provider: str) -> None:
        super().__init__(message)
        self.provider = provider


def refuse_sourced(scene: Scene, kind: Kind, *, levels: Levels, action: Action, probe: Action | None = None) -> None:
    """Refuse what the tree alone serves for a catalog that shows another system, to who may do it. Raises Elsewhere, Forbidden.

    `probe`: who may do that may learn from the source that a thing is missing.
    """
    traits = scene.settled.traits
    if traits is None or not traits.is_sourced:
        return
    node, chain = scene.find(levels, kind)
    full = chain if node is not None else (Link.absent(kind, levels[-1]), *chain)
    if probe is None or not scene.decide(probe, full).allowed:
        scene.require(action, full)
    raise _elsewhere(scene)


def is_federated(scene: Scene) -> bool:
    """Say whether the scene's catalog shows another Iceberg catalog."""
    traits = scene.settled.traits
    return traits is not None and traits.is_federated


def refuse_federated(scene: Scene) -> None:
    """Refuse what the tree alone serves for a catalog that shows another Iceberg catalog; whoever calls has decided. Raises Elsewhere."""
    traits = scene.settled.traits
    if traits is not None and traits.is_federated:
        raise _elsewhere(scene)


def _elsewhere(scene: Scene) -> Elsewhere:
    provider = scene.catalog_record.provider
    federated = "its schemas, tables and views are served over Iceberg REST and Gravitino REST"
    told = federated if provider in FEDERATED else "its schemas and tables are served over Gravitino REST"
    return Elsewhere(
        f"Catalog {scene.catalog.name} of provider {provider} shows another system: {told}, and nothing else of it",
        provider=provider,
    )


def holds(scene: Scene, kind: Kind) -> bool:
    """Say whether the scene's catalog is one for filesets, models or topics, as the kind is; functions are in any."""
    return is_in_any_catalog(kind) or HELD.get(scene.catalog_record.provider) is kind


def require_held(scene: Scene, kind: Kind) -> None:
    """Refuse to make something in a catalog of another type. Raises Unsupported."""
    if not holds(scene, kind):
        record, wanted = scene.catalog_record, [provider for provider, held in HELD.items() if held is kind]
        raise Unsupported(
            f"Catalog {scene.catalog.name} of provider {record.provider} holds no {kind.word}s: choose a catalog of provider {wanted[0]}"
        )
    refuse_making(scene)


def least_levels(scene: Scene) -> int:
    """Return how many levels below its catalog a table's name has at least: only Lance's may lie directly in it."""
    return 1 if format_of(scene) == LANCE else 2


def require_format(scene: Scene, wanted: str) -> None:
    """Refuse to make something in a catalog that holds tables of another format. Raises BadRequest."""
    traits = scene.traits
    if traits.is_federated:
        raise _elsewhere(scene)
    held = traits.table_format
    if held == NO_TABLES:
        kept = HELD[traits.record.provider].word
        raise BadRequest(f"Catalog {scene.catalog.name} holds {kept}s and no tables: choose another catalog for this")
    if held != wanted:
        raise BadRequest(f"Catalog {scene.catalog.name} holds {_HELD[held]}: choose another catalog for this")
    if traits.is_sourced or traits.shows_directory:
        refuse_making(scene)


def refuse_making(scene: Scene) -> None:
    """Refuse to make something in a catalog that shows a directory. Raises Unsupported."""
    traits = scene.traits
    if traits.is_federated:
        raise _elsewhere(scene)
    if traits.is_sourced:
        raise Unsupported(
            f"Catalog {scene.catalog.name} shows another system, in which schemas and tables are made there or over Gravitino REST: choose another "
            "catalog for this"
        )
    if traits.shows_directory:
        raise Unsupported(
            f"Catalog {scene.catalog.name} shows a directory, which this server only reads: choose another catalog for this"
        )


def refuse_work(scene: Scene, action: Action) -> None:
    """Refuse what is not served of a catalog that shows a directory, to who may do it otherwise. Raises Unsupported, Forbidden."""
    traits = scene.settled.traits
    if traits is None or not traits.shows_directory:
        return
    scene.require(action, scene.settled.outer)
    raise Unsupported(
        f"Catalog {scene.catalog.name} shows a directory, whose tables are listed, described and read over Lance REST, and nothing else: change "
        "them at their location, or import them into another catalog"
    )


def of_other_format(path: Levels, found: str) -> NotFound:
    """Say that a table is of a format which is not served here."""
    told = _SERVED.get(found, f"a table of format {found}")
    return NotFound(f"Table does not exist: {render(path)}. There is {told}", kind="table")
