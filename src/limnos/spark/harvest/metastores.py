# SPDX-License-Identifier: Apache-2.0
"""Listing of a Hive metastore: its databases, and the Iceberg tables in them with their metadata files.

Must not know how metadata is read. Executors read each file that the metastore names, as far as their rights allow: the
metastore is trusted to name metadata files, and not that they are ones.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from limnos.formats.iceberg import metadata_files
from limnos.model.errors import InvalidTable, LimnosError, UnsupportedOperation
from limnos.model.extras import missing_part
from limnos.model.harvest_formats import ICEBERG
from limnos.spark.harvest.listing import (
    DirectoryLister,
    DirectoryVisit,
    HarvestRoot,
    TableCandidate,
    TableLister,
    name_problem,
    reason,
)
from limnos.spark.harvest.stores import METASTORE, file_location

if TYPE_CHECKING:
    from limnos.sources.catalogs.entries import CatalogEntry
    from limnos.sources.catalogs.hive_catalog import HiveCatalog

TIMEOUT_S: Final = 60.0
"""The time limit of a call, in seconds."""


def is_metastore(location: str) -> bool:
    """Return whether a root is a metastore."""
    return location.startswith(METASTORE)


def lister_of(root: HarvestRoot) -> TableLister:
    """Return the lister of a root. Raises InvalidTable without the library of metastores, BadRequest for an address
    that is none.
    """
    return MetastoreLister(root) if is_metastore(root.location) else DirectoryLister(root)


class MetastoreLister:
    """Lists the databases of a metastore, and the tables in each."""

    def __init__(self, root: HarvestRoot, catalog: HiveCatalog | None = None) -> None:
        self._root = root
        self._catalog = catalog or _open_catalog(root.location)

    def visit(self, levels: tuple[str, ...]) -> DirectoryVisit:
        """List the databases, or the tables of one. One that cannot be listed is a candidate with the problem."""
        try:
            return self._tables(levels) if levels else self._databases()
        except (OSError, LimnosError) as error:
            return DirectoryVisit([TableCandidate(levels=levels, problem=f"it cannot be listed: {reason(error)}")])

    def close(self) -> None:
        """Close the connections."""
        self._catalog.close()

    def _databases(self) -> DirectoryVisit:
        candidates, below = [], []
        for database in self._catalog.namespaces():
            problem = name_problem(database[-1])
            if problem is None:
                below.append(database)
            else:
                candidates.append(TableCandidate(levels=database, problem=problem))
        return DirectoryVisit(candidates, below)

    def _tables(self, levels: tuple[str, ...]) -> DirectoryVisit:
        entries = self._catalog.entries(levels)
        return DirectoryVisit([_candidate((*levels, name), entry) for name, entry in entries if entry.kind == "table"])


def _candidate(levels: tuple[str, ...], entry: CatalogEntry) -> TableCandidate:
    try:
        if not entry.metadata_location:
            raise InvalidTable("the metastore names no metadata file of it")
        location = file_location(entry.metadata_location)
    except (InvalidTable, UnsupportedOperation) as error:
        return TableCandidate(levels=levels, format=ICEBERG, problem=f"its metadata: {error.message}")
    version = None
    with suppress(InvalidTable):
        version = metadata_files.version_of_file(location.rpartition("/")[2])
    return TableCandidate(levels=levels, format=ICEBERG, metadata_location=location, version=version)


def _open_catalog(location: str) -> HiveCatalog:
    try:
        from limnos.sources.catalogs import hive_catalog  # noqa: PLC0415 - it imports an optional library
    except ImportError:
        raise InvalidTable(missing_part("Harvests of metastores need", ["hive"])) from None
    return hive_catalog.HiveCatalog(location, timeout_s=TIMEOUT_S)
