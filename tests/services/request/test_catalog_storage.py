# SPDX-License-Identifier: Apache-2.0
"""Locations of new tables: the fast computation gives the same result as the full check."""

from __future__ import annotations

import pytest

from limnos.files import allow_everything, normalise
from limnos.model.errors import BadRequest, OutsideRoots
from limnos.model.records import CatalogRecord
from limnos.services.request.catalog_storage import (
    CatalogStorage,
    _table_directory,
    catalog_storage_within,
    check_server_location,
)
from limnos.services.request.named_storages import NamedStorages

UUID = "01234567-89ab-7cde-8f01-23456789abcd"


def place(warehouse: str, allowed: str = "") -> CatalogStorage:
    """Return a catalog's storage."""
    properties = {"warehouse": warehouse, "allowed-locations": allowed}
    record = CatalogRecord(
        type="RELATIONAL", provider="lakehouse-iceberg", comment=None, properties=properties, in_use=True
    )
    return catalog_storage_within(record, "/fallback", allow_everything(), storages=NamedStorages())


@pytest.mark.parametrize("allowed", ["", "s3://other/x"])
@pytest.mark.parametrize("warehouse", ["/x", "/x/", "/tmp//y", "file:/x", "s3://b", "s3://b/", "s3a://b/k//"])
def test_fast_path_normalizes_every_warehouse_spelling(warehouse: str, allowed: str) -> None:
    """The fast computation gives the normal location for every spelling of the warehouse."""
    where = place(warehouse, allowed)
    location = where.own_location(UUID)

    assert where.normal_location(location, UUID) == normalise(location)


def test_requested_location_outside_the_roots_is_refused() -> None:
    """A requested location is normalized, and is refused outside of the catalog's roots."""
    where = place("/x", "s3://other/x")

    assert where.normal_location("s3a://other/x/t/", UUID) == "s3://other/x/t"
    with pytest.raises(OutsideRoots):
        where.normal_location("/y/t", UUID)


@pytest.mark.parametrize(
    "location, directory",
    [
        ("s3://b/wh/t/metadata/00001-a.metadata.json", "s3://b/wh/t"),
        ("s3://b/wh/t", "s3://b/wh/t"),
        ("s3://b/metadata/t", "s3://b/metadata/t"),
    ],
)
def test_root_to_allow_is_a_directory_of_a_table(location: str, directory: str) -> None:
    """The advice never names a single metadata file."""
    assert _table_directory(location) == directory


@pytest.mark.parametrize("made_up", ["../../etc", ".", "a/../../b", "%2e%2e"])
def test_invalid_table_uuid_never_becomes_part_of_a_location(made_up: str) -> None:
    """A table UUID from a client that is not a valid UUID never becomes part of a location."""
    where = place("/x")

    with pytest.raises((BadRequest, OutsideRoots)):
        where.normal_location(where.own_location(made_up), made_up)


@pytest.mark.parametrize(
    "location",
    ["s3://b/wh", "s3a://B//wh/", "s3://b", "s3://b/wh/7", "s3://b/wh/7/x", "s3://b/w%68/8/x"],
)
def test_catalog_at_the_server_warehouse_is_refused(location: str) -> None:
    """A catalog may not name the server's warehouse, its parents, or other catalogs' directories in it, in any
    spelling.
    """
    with pytest.raises(BadRequest, match="choose another"):
        check_server_location(location, "s3://b/wh", catalog_id=9)


@pytest.mark.parametrize(
    "location, catalog", [("s3://b/wh/9/x", 9), ("s3://b/wh/7", None), ("s3://b/wh/main", 0), ("s3://b/wh-2", 0)]
)
def test_catalog_may_name_its_own_or_configured_directories(location: str, catalog: int | None) -> None:
    """A catalog may name its own directory, a directory of the settings, and locations beside these. An import uses the
    directory in its file.
    """
    check_server_location(location, "s3://b/wh", catalog_id=catalog)
