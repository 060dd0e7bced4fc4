"""Tables of several formats in one tree: which one a catalog holds, and how a table is refused where another one is served.

May import `access`, `model`, `names` and the scene. Knows no wire format. A catalog's provider says what its tables are, so that no
protocol has to look at each of them; a table that another protocol serves does not exist for this one, by its lists and by its
answers alike. Decision record 0043.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from limnos.model.decisions import ChainLink
from limnos.model.errors import BadRequest, NotFound, UnsupportedOperation
from limnos.model.kind_table import HELD, is_in_any_catalog
from limnos.model.kinds import REST_PROVIDERS, Kind
from limnos.names.iceberg import render
from limnos.services.request import catalog_traits
from limnos.services.request.catalog_traits import NO_TABLES

if TYPE_CHECKING:
    from limnos.access.actions import Action
    from limnos.names.path import Levels
    from limnos.services.request.request_view import RequestView

ICEBERG: Final = catalog_traits.ICEBERG
LANCE: Final = "lance"
SOURCE: Final = catalog_traits.SOURCE
_FORMAT_ADVICE: Final = {
    ICEBERG: "an Iceberg table: open it over Iceberg REST",
    LANCE: "a Lance table: open it over Lance REST",
    SOURCE: "a table of another system: look at it over Gravitino REST, and open it there",
}
_FORMAT_DESCRIPTIONS: Final = {
    ICEBERG: "Iceberg tables, which are made over Iceberg REST",
    LANCE: "Lance tables, which are made over Lance REST",
    SOURCE: "tables of another system, which are made there or over Gravitino REST",
}


def format_of(request_view: RequestView) -> str:
    """Return the format of the tables in the scene's catalog, `NO_TABLES` where it holds none."""
    return request_view.traits.table_format


def is_sourced(request_view: RequestView) -> bool:
    """Say whether the scene's catalog shows what an outside system has."""
    traits = request_view.settled.traits
    return traits is not None and traits.is_sourced


class ExternalCatalogError(UnsupportedOperation):
    """What was asked of the tree is another system's: whoever can ask that goes on there."""

    def __init__(self, message: str, *, provider: str) -> None:
        super().__init__(message)
        self.provider = provider


def refuse_sourced(
    request_view: RequestView, kind: Kind, *, levels: Levels, action: Action, probe: Action | None = None
) -> None:
    """Refuse what the tree alone serves for a catalog that shows another system, to who may do it. Raises Elsewhere, Forbidden.

    `probe`: who may do that may learn from the source that a thing is missing.
    """
    traits = request_view.settled.traits
    if traits is None or not traits.is_sourced:
        return
    node, chain = request_view.find(levels, kind)
    full = chain if node is not None else (ChainLink.absent(kind, levels[-1]), *chain)
    if probe is None or not request_view.decide(probe, full).allowed:
        request_view.require(action, full)
    raise _external_catalog_error(request_view)


def is_federated(request_view: RequestView) -> bool:
    """Say whether the scene's catalog shows another Iceberg catalog."""
    traits = request_view.settled.traits
    return traits is not None and traits.is_federated


def refuse_federated(request_view: RequestView) -> None:
    """Refuse what the tree alone serves for a catalog that shows another Iceberg catalog; whoever calls has decided. Raises Elsewhere."""
    traits = request_view.settled.traits
    if traits is not None and traits.is_federated:
        raise _external_catalog_error(request_view)


def _external_catalog_error(request_view: RequestView) -> ExternalCatalogError:
    provider = request_view.catalog_record.provider
    federated = "its schemas, tables and views are served over Iceberg REST and Gravitino REST"
    told = federated if provider in REST_PROVIDERS else "its schemas and tables are served over Gravitino REST"
    return ExternalCatalogError(
        f"Catalog {request_view.catalog.name} of provider {provider} shows another system: {told}, and nothing else of it",
        provider=provider,
    )


def is_kind_held(request_view: RequestView, kind: Kind) -> bool:
    """Say whether the scene's catalog is one for filesets, models or topics, as the kind is; functions are in any."""
    return is_in_any_catalog(kind) or HELD.get(request_view.catalog_record.provider) is kind


def require_kind_held(request_view: RequestView, kind: Kind) -> None:
    """Refuse to make something in a catalog of another type. Raises Unsupported."""
    if not is_kind_held(request_view, kind):
        record, wanted = request_view.catalog_record, [provider for provider, held in HELD.items() if held is kind]
        raise UnsupportedOperation(
            f"Catalog {request_view.catalog.name} of provider {record.provider} holds no {kind.word}s: choose a catalog of provider {wanted[0]}"
        )
    refuse_create(request_view)


def least_levels(request_view: RequestView) -> int:
    """Return how many levels below its catalog a table's name has at least: only Lance's may lie directly in it."""
    return 1 if format_of(request_view) == LANCE else 2


def require_format(request_view: RequestView, wanted: str) -> None:
    """Refuse to make something in a catalog that holds tables of another format. Raises BadRequest."""
    traits = request_view.traits
    if traits.is_federated:
        raise _external_catalog_error(request_view)
    held = traits.table_format
    if held == NO_TABLES:
        kept = HELD[traits.record.provider].word
        raise BadRequest(
            f"Catalog {request_view.catalog.name} holds {kept}s and no tables: choose another catalog for this"
        )
    if held != wanted:
        raise BadRequest(
            f"Catalog {request_view.catalog.name} holds {_FORMAT_DESCRIPTIONS[held]}: choose another catalog for this"
        )
    if traits.is_sourced or traits.shows_directory:
        refuse_create(request_view)


def refuse_create(request_view: RequestView) -> None:
    """Refuse to make something in a catalog that shows a directory. Raises Unsupported."""
    traits = request_view.traits
    if traits.is_federated:
        raise _external_catalog_error(request_view)
    if traits.is_sourced:
        raise UnsupportedOperation(
            f"Catalog {request_view.catalog.name} shows another system, in which schemas and tables are made there or over Gravitino REST: choose another "
            "catalog for this"
        )
    if traits.shows_directory:
        raise UnsupportedOperation(
            f"Catalog {request_view.catalog.name} shows a directory, which this server only reads: choose another catalog for this"
        )


def refuse_directory_request(request_view: RequestView, action: Action) -> None:
    """Refuse what is not served of a catalog that shows a directory, to who may do it otherwise. Raises Unsupported, Forbidden."""
    traits = request_view.settled.traits
    if traits is None or not traits.shows_directory:
        return
    request_view.require(action, request_view.settled.outer)
    raise UnsupportedOperation(
        f"Catalog {request_view.catalog.name} shows a directory, whose tables are listed, described and read over Lance REST, and nothing else: change "
        "them at their location, or import them into another catalog"
    )


def other_format_error(path: Levels, found: str) -> NotFound:
    """Say that a table is of a format which is not served here."""
    told = _FORMAT_ADVICE.get(found, f"a table of format {found}")
    return NotFound(f"Table does not exist: {render(path)}. There is {told}", kind="table")
