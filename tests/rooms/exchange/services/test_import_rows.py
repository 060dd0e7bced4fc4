# SPDX-License-Identifier: Apache-2.0
"""Locations of imported objects: the importing store registers each of them, and refuses those that another
object has.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.formats.gravitino.policies import TABLE_MAINTENANCE
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord
from limnos.model.records import PolicyRecord
from limnos.model.storage_locations import LocationKind
from limnos.rooms.exchange.services.import_rows import _check_held
from limnos.services.catalog.catalogs import catalog_create
from limnos.services.catalog.filesets import FilesetRequest, fileset_create
from limnos.services.governance.policies import PolicyRequest, policy_create
from limnos.services.iceberg.tables import table_create
from limnos.services.iceberg.views import ViewRequest, view_create
from limnos.services.request.request_scope import RequestScope
from limnos.store.exchange.imports import ImportedObject
from tests.backends import StoreLab
from tests.inprocess import LAKE, fill, new_table
from tests.rooms.exchange.services.test_exchange import (
    VERSION,
    begin_import,
    desk_at,
    exported,
    fed,
    fresh_lab,
    imported,
    records_of,
)
from tests.services.conftest import ServiceDesk


@pytest.fixture
def target(lab: StoreLab, tmp_path: Path) -> Iterator[ServiceDesk]:
    """A desk on an empty store."""
    desk = desk_at(lab, tmp_path / "target")
    yield desk
    desk.node.services.files.close()


def furnish_locations(desk: ServiceDesk, folder: Path) -> None:
    """Create an object of each kind with files: two tables, one of which has a data path, a view and two filesets."""
    desk.run(fill(desk.ctx()))
    allowed = {"allowed-locations": f"file://{folder}/more"}
    for provider, name, properties in (("fileset", "files", allowed), ("lakehouse-iceberg", "paths", allowed)):
        creation = catalog_create(
            desk.ctx(),
            metalake=LAKE,
            name=name,
            catalog_type=None,
            provider=provider,
            comment=None,
            properties=properties,
        )
        desk.run(creation)
    scope, files = RequestScope(LAKE, "paths"), RequestScope(LAKE, "files")
    desk.namespace("s", scope=scope)
    desk.namespace("s", scope=files)
    request = new_table("t")._replace(properties={"write.data.path": f"file://{folder}/more/data"})
    desk.run(table_create(desk.ctx(), scope, namespace=("s",), request=request))
    view = ViewRequest(name="v", location=None, schema={"type": "struct", "fields": []}, version=VERSION, properties={})
    desk.run(view_create(desk.ctx(), scope, namespace=("s",), request=view))
    for name, external, locations in (("kept", False, {}), ("told", True, {"default": f"file://{folder}/more/told"})):
        fileset_request = FilesetRequest(None, external, locations, {})
        desk.run(fileset_create(desk.ctx(), files, path=("s", name), request=fileset_request))


def registered(desk: ServiceDesk) -> list[tuple[int, str]]:
    """Return the kinds and locations that the store registers, without those of catalogs."""
    location_kinds = (
        LocationKind.TABLE,
        LocationKind.DATA_PATH,
        LocationKind.VIEW,
        LocationKind.FILESET,
        LocationKind.EXTERNAL_FILESET,
    )
    kinds = ", ".join(str(int(each)) for each in location_kinds)
    return sorted((row[0], row[1]) for row in desk.rows(f"SELECT kind, location FROM place WHERE kind IN ({kinds})"))


@pytest.fixture
def located(sqlite_template: Path, tmp_path: Path) -> Iterator[ServiceDesk]:
    """A desk whose lake has an object of each kind with files."""
    lab = fresh_lab(sqlite_template, tmp_path / "located")
    desk = desk_at(lab, tmp_path / "located")
    furnish_locations(desk, tmp_path)
    yield desk
    desk.node.services.files.close()
    lab.close()


def test_imported_objects_claim_their_locations(located: ServiceDesk, target: ServiceDesk) -> None:
    """The importing store registers the same locations, including data paths. A second import is refused with the
    number of the first record whose location is taken: that of the first catalog that states a root.
    """
    data = exported(located)

    imported(target, data)

    assert [LocationKind(kind) for kind, _ in registered(target)] == [
        LocationKind.TABLE,
        LocationKind.DATA_PATH,
        LocationKind.VIEW,
        LocationKind.FILESET,
        LocationKind.EXTERNAL_FILESET,
    ]
    assert registered(target) == registered(located)
    with pytest.raises(BadRequest, match=r"^Record 5: .* another metalake, and metalakes cannot share files"):
        fed(target, begin_import(target, name="again"), records_of(data))


def _move_fileset(records: list[ExportRecord], name: str, location: str) -> int:
    """Change a fileset's location. Returns the number of its record."""
    number = next(at for at, each in enumerate(records, 1) if each.entity.name == name)
    records[number - 1].entity.fileset.locations["default"] = location
    return number


@pytest.mark.parametrize("below", ["", "/below"])
@pytest.mark.parametrize("kind", [LocationKind.TABLE, LocationKind.DATA_PATH, LocationKind.VIEW])
def test_fileset_overlapping_an_imported_location_is_refused(
    kind: LocationKind, below: str, located: ServiceDesk, target: ServiceDesk, tmp_path: Path
) -> None:
    """A fileset at or below the location of another object in the file is refused with its record number."""
    ((occupied_location,),) = located.rows("SELECT location FROM place WHERE kind = ?", int(kind))
    records = records_of(exported(located))
    catalog = next(each for each in records if each.catalog.name == "files").catalog
    catalog.properties["allowed-locations"] = f"file://{tmp_path}/located, file://{tmp_path}/more"
    number = _move_fileset(records, "told", f"{occupied_location}{below}")

    with pytest.raises(BadRequest, match=rf"^Record {number}: .*files"):
        fed(target, begin_import(target), records, at_once=100)


@pytest.mark.parametrize("content", ["{", '{"compact": "yes"}', '{"quietHours": ["now"]}'])
def test_invalid_content_of_imported_policy_is_refused(located: ServiceDesk, target: ServiceDesk, content: str) -> None:
    """A policy with content that no request could create is refused with its record number, because tasks read
    policies.
    """
    creation = policy_create(located.ctx(), metalake=LAKE, name="nightly", request=PolicyRequest(TABLE_MAINTENANCE, {}))
    located.run(creation)
    records = records_of(exported(located))
    number = next(at for at, each in enumerate(records, 1) if each.entity.name == "nightly")
    records[number - 1].entity.policy.content = content

    with pytest.raises(BadRequest, match=rf"^Record {number}: "):
        fed(target, begin_import(target), records, at_once=100)


def test_a_policy_of_polaris_is_translated(located: ServiceDesk, target: ServiceDesk) -> None:
    """A Polaris policy is imported with this server's policy type and content; its comment names the parts that were
    omitted.
    """
    creation = policy_create(located.ctx(), metalake=LAKE, name="nightly", request=PolicyRequest(TABLE_MAINTENANCE, {}))
    located.run(creation)
    records = records_of(exported(located))
    policy = next(each for each in records if each.entity.name == "nightly").entity.policy
    policy.policy_type, policy.comment = "system.snapshot-expiry", "old"
    policy.content = '{"enable": true, "config": {"max_snapshot_age_days": 7, "max_ref_age_days": 3}}'
    fed(target, begin_import(target), records, at_once=100)

    (stored,) = target.rows("SELECT record FROM node WHERE name = 'nightly'")
    record = PolicyRecord.read(bytes(stored[0]))
    assert (record.policy_type, record.content) == ("system_iceberg_snapshot_expiration", '{"olderThanDays":7}')
    assert record.enabled
    assert record.comment == "old\nNot imported from the policy's type system.snapshot-expiry: config.max_ref_age_days"


@pytest.mark.parametrize(
    "kind, provider, fits",
    [
        (Kind.VIEW, "lakehouse-iceberg", True),
        (Kind.VIEW, "lakehouse-generic", False),
        (Kind.VIEW, "hive", True),
        (Kind.TOPIC, "kafka", True),
        (Kind.TOPIC, "lakehouse-iceberg", False),
        (Kind.DATATYPE, "hive", False),
        (Kind.FUNCTION, "model", True),
    ],
)
def test_objects_are_imported_into_catalogs_that_contain_their_kind(kind: Kind, provider: str, fits: bool) -> None:
    """An import accepts an object in a catalog only if the catalog's provider supports the kind of object, or if the
    catalog is a connector catalog with placeholders for that kind.
    """
    above = ImportedObject(new_id=1, kind=Kind.NAMESPACE, provider=provider)

    if fits:
        _check_held(kind, above)
    else:
        with pytest.raises(BadRequest, match="cannot contain"):
            _check_held(kind, above)
