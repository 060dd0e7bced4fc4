# SPDX-License-Identifier: Apache-2.0
"""Export and import of a metalake: an import restores all objects, publishes them only at its end, and names the record
of each error.
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from limnos.client.activity.exchange import cut_into_parts
from limnos.files import allow_everything
from limnos.formats.gravitino.policies import content_text
from limnos.model.errors import AlreadyExists, BadRequest, CommitConflict, NotFound, PermissionDenied
from limnos.model.frames import frame_message
from limnos.model.kinds import Kind
from limnos.model.permits import Permit, upkeep_permit
from limnos.model.privileges import GrantCondition, Privilege
from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord
from limnos.model.records import ModelRecord, NamespaceRecord, ObjectRecord, PolicyRecord, TagRecord, TopicRecord
from limnos.rooms.exchange.formats.encoding import Form, decode_records, encode_records
from limnos.rooms.exchange.services.metalake_export import metalake_export
from limnos.rooms.exchange.services.metalake_import import (
    PRUNED_AT_ONCE,
    import_begin,
    import_feed,
    import_finish,
    import_give_up,
    import_load,
    imports_list,
)
from limnos.services.catalog.catalogs import catalog_create
from limnos.services.catalog.filesets import FilesetRequest, fileset_create
from limnos.services.catalog.metalakes import metalake_create, metalakes_visible
from limnos.services.catalog.models import version_link
from limnos.services.catalog.protection import protection_set
from limnos.services.catalog.tables import table_load
from limnos.services.governance.attachments import attachments_associate
from limnos.services.governance.statistics import statistics_update
from limnos.services.governance.tag_values import TagValuePair, pairs_associate
from limnos.services.iceberg.views import ViewRequest, view_create
from limnos.services.identity.groups import members_add
from limnos.services.identity.owners import owner_set
from limnos.services.identity.users import principal_add
from limnos.services.lookup.metalake_objects import metalake_object_create
from limnos.services.lookup.namespace_objects import namespace_object_create
from limnos.services.lookup.securables import AttachmentTarget
from limnos.services.request.context import Context
from limnos.services.request.files import FileOperations
from limnos.services.request.request_scope import RequestScope
from limnos.store.exchange.imports import MetalakeImport
from limnos.store.tx import Tx
from tests.backends import StoreLab, sqlite_copy
from tests.inprocess import ADMIN, LAKE, Node, fill
from tests.services.conftest import ServiceDesk

COPY = "copy"
CROWD = int(os.environ.get("LIMNOS_TEST_EXPORT", "1000"))
SECRET = "T0psecret"
NUMBER = re.compile(r'(?<![\w.-])"?(\d{4,})"?(?![\w.-])')


def desk_at(lab: StoreLab, folder: Path, *, access: bool = True) -> ServiceDesk:
    """Return a desk whose tables have files in a directory."""
    desk = ServiceDesk(lab, access=access)
    warehouse = f"file://{folder}/warehouse"
    desk.node = Node(lab.store, access=access, files=FileOperations(allow_everything()), warehouse=warehouse)
    return desk


def fresh_lab(template: Path, folder: Path) -> StoreLab:
    """A store lab on an SQLite file in its own directory."""
    folder.mkdir()
    return StoreLab(sqlite_copy(template, folder))


@pytest.fixture
def other(sqlite_template: Path, tmp_path: Path) -> Iterator[ServiceDesk]:
    """A desk on an empty SQLite store, for tests that do not depend on the database."""
    lab = fresh_lab(sqlite_template, tmp_path / "other")
    desk = desk_at(lab, tmp_path / "other")
    yield desk
    desk.node.services.files.close()
    lab.close()


@pytest.fixture
def source(sqlite_template: Path, tmp_path: Path) -> Iterator[ServiceDesk]:
    """A desk whose lake has one object of every kind."""
    lab = fresh_lab(sqlite_template, tmp_path / "source")
    desk = desk_at(lab, tmp_path / "source")
    furnish(desk)
    yield desk
    desk.node.services.files.close()
    lab.close()


@pytest.fixture
def target(lab: StoreLab, tmp_path: Path) -> Iterator[ServiceDesk]:
    """A desk on an empty store."""
    desk = desk_at(lab, tmp_path / "target")
    yield desk
    desk.node.services.files.close()


IN_URLS = {
    "homepage": f"https://ana:{SECRET}@h.example.com/x",
    "report": f"https://h.example.com/x?access_token={SECRET}&y=1",
}
"""Properties with ordinary names whose values contain a secret."""


def furnish(desk: ServiceDesk) -> None:
    """Create one object of every kind that an export contains."""
    desk.run(fill(desk.ctx()))
    desk.users("ana", "bob")
    for provider, name, more in (
        ("model", "models", {}),
        ("fileset", "files", {}),
        ("messaging", "queues", {}),
        (
            "lakehouse-iceberg",
            "flat",
            {"nested-namespaces": "false", "s3.secret-access-key": SECRET, "note": "kept", **IN_URLS},
        ),
    ):
        creation = catalog_create(
            desk.ctx(),
            metalake=LAKE,
            name=name,
            catalog_type=None,
            provider=provider,
            comment=f"of {name}",
            properties=more,
        )
        desk.run(creation)
    desk.namespace("a")
    desk.namespace("a", "b", "c d")
    desk.table("a", "t")
    desk.table("a", "b", "c d", "ünïcode 表")
    view = ViewRequest(name="v", location=None, schema={"type": "struct", "fields": []}, version=VERSION, properties={})
    desk.run(view_create(desk.ctx(), RequestScope(LAKE, "main"), namespace=("a",), request=view))
    _leaves(desk)
    _access(desk)


VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["a"],
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
}


def _leaves(desk: ServiceDesk) -> None:
    for catalog in ("models", "files", "queues"):
        desk.namespace("s", scope=RequestScope(LAKE, catalog))
    model = namespace_object_create(
        desk.ctx(),
        RequestScope(LAKE, "models"),
        path=("s", "churn"),
        kind=Kind.MODEL,
        record=lambda _: ModelRecord("of ana's", {"k": "v"}, 0),
    )
    desk.run(model)
    for number in range(2):
        linked = version_link(
            desk.ctx(),
            RequestScope(LAKE, "models"),
            path=("s", "churn"),
            uris={"u": f"s3://m/{number}"},
            aliases=(f"a{number}",),
            comment=None,
            properties={"p": "q"},
        )
        desk.run(linked)
    topic = namespace_object_create(
        desk.ctx(),
        RequestScope(LAKE, "queues"),
        path=("s", "o"),
        kind=Kind.TOPIC,
        record=lambda _: TopicRecord(None, {}),
    )
    desk.run(topic)
    dashboard = namespace_object_create(
        desk.ctx(),
        RequestScope(LAKE, "main"),
        path=("a", "board"),
        kind=Kind.DASHBOARD,
        record=lambda _: ObjectRecord("charts", {}).with_fields({"url": "https://c.example.com/1", "tables": ["t"]}),
    )
    desk.run(dashboard)
    request = FilesetRequest(None, False, {}, {})
    desk.run(fileset_create(desk.ctx(), RequestScope(LAKE, "files"), path=("s", "f"), request=request))


def _access(desk: ServiceDesk) -> None:
    ctx = desk.ctx
    desk.run(principal_add(ctx(), metalake=LAKE, kind=Kind.GROUP, name="crew"))
    desk.run(principal_add(ctx(), metalake=LAKE, kind=Kind.USER, name="cyd", enabled=False, external_id="x-1"))
    desk.run(members_add(ctx(), metalake=LAKE, group="crew", users=("bob",)))
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA)
    desk.allow("ana", Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE)
    desk.allow("ana", Kind.TABLE, "main.a.t", Privilege.MODIFY_TABLE, condition=GrantCondition.DENY)
    table, column = AttachmentTarget(LAKE, Kind.TABLE, "main.a.t"), AttachmentTarget(LAKE, Kind.COLUMN, "main.a.t.x")
    for kind, name, record in (
        (Kind.TAG, "pii", TagRecord(comment="care", properties={})),
        (
            Kind.POLICY,
            "keep",
            PolicyRecord(
                comment=None,
                properties={},
                policy_type="custom",
                enabled=True,
                content=content_text("custom", {"supportedObjectTypes": ["TABLE"]}),
            ),
        ),
    ):
        desk.run(metalake_object_create(ctx(), metalake=LAKE, kind=kind, name=name, record=record))
        desk.run(attachments_associate(ctx(), table, kind=kind, adds=(name,), removes=()))
        desk.run(attachments_associate(ctx(), column, kind=kind, adds=(name,), removes=()))
    desk.run(pairs_associate(ctx(), column, adds=(TagValuePair("pii", "z"), TagValuePair("pii", "a")), removes=()))
    desk.run(pairs_associate(ctx(), table, adds=(TagValuePair("pii", "a"),), removes=()))
    desk.run(statistics_update(ctx(), table, values=(("", "custom-rows", 7), ("day=1", "custom-rows", 3))))
    desk.run(statistics_update(ctx(), column, values=(("", "custom-nulls", 0),)))
    owned = owner_set(ctx(), metalake=LAKE, kind=Kind.TABLE, full_name="main.a.t", owner_kind=Kind.GROUP, owner="crew")
    desk.run(owned)
    desk.run(protection_set(ctx(), metalake=LAKE, kind=Kind.NAMESPACE, full_name="main.a", below=True))


def exported(
    desk: ServiceDesk, *, metalake: str = LAKE, form: Form = "proto", user: str = ADMIN, secrets: bool = False
) -> bytes:
    """Return the whole export."""

    async def read() -> bytes:
        stream = metalake_export(desk.ctx(user), metalake=metalake, form=form, secrets=secrets)
        return b"".join([piece async for piece in stream])

    return desk.run(read())


def records_of(data: bytes, form: Form = "proto") -> list[ExportRecord]:
    """Return the records of an export."""
    return decode_records(data, form, first=1)


def begin_import(desk: ServiceDesk, *, name: str = COPY, form: Form = "proto", ids: str = "map") -> MetalakeImport:
    """Begin an import."""
    return desk.run(import_begin(desk.ctx(), name=name, form=form, ids=ids))


async def feed(ctx: Context, import_id: int, *, after: int, data: bytes) -> MetalakeImport:
    """Send bytes to an import in chunks."""

    async def body() -> bytes:
        return data

    return await import_feed(ctx, import_id, after=after, body=body)


def fed(
    desk: ServiceDesk, job: MetalakeImport, records: Sequence[ExportRecord], *, at_once: int = 7, form: Form = "proto"
) -> MetalakeImport:
    """Return an import with some records."""
    for start in range(job.records, len(records), at_once):
        data = encode_records(records[start : start + at_once], form)
        job = desk.run(feed(desk.ctx(), job.id, after=start, data=data))
    return job


def imported(
    desk: ServiceDesk, data: bytes, *, name: str = COPY, form: Form = "proto", ids: str = "map", at_once: int = 7
) -> tuple[str, ...]:
    """Import an export. Returns the omitted properties."""
    job = begin_import(desk, name=name, form=form, ids=ids)
    job = fed(desk, job, records_of(data, form), at_once=at_once, form=form)
    return desk.run(import_finish(desk.ctx(), job.id)).masked


def entries_of(data: bytes, *, renumbered: bool) -> list[dict[str, Any]]:
    """Return an export without its time and origin, and with ids replaced by their order of appearance."""
    comparable = []
    seen: dict[str, int] = {}
    for record in records_of(data)[1:]:
        fields = MessageToDict(record, preserving_proto_field_name=True)
        if "catalog" in fields:
            left = {key: value for key, value in fields["catalog"].pop("properties", {}).items() if key != "warehouse"}
            fields["catalog"]["properties"] = left
        fields.pop("masked", None)
        comparable.append(_numbered(fields, seen) if renumbered else fields)
    return comparable


def _numbered(value: Any, seen: dict[str, int], key: str = "") -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {name: _numbered(each, seen, name) for name, each in value.items()}
    if key in {"writer_id", "attached_by", "id"} or (key.endswith("_id") and key != "external_id"):
        return seen.setdefault(str(value), len(seen))
    return value


def without(fields: list[dict[str, Any]], word: str, name: str) -> list[dict[str, Any]]:
    """Return the fields with another metalake name."""
    fields[0][word]["name"] = name
    return fields


@pytest.mark.parametrize("form", ["proto", "json"])
def test_import_restores_the_exported_metalake(source: ServiceDesk, target: ServiceDesk, form: Form) -> None:
    """An import restores all objects with new ids, owners, rules, tags, versions and times, and tables can be read."""
    data = exported(source, form=form)
    masked = imported(target, data, form=form)

    first = encode_records(records_of(data, form), "proto")
    again = exported(target, metalake=COPY)
    assert masked == tuple(sorted(f"flat: {key}" for key in ("s3.secret-access-key", *IN_URLS)))
    assert without(entries_of(again, renumbered=True), "metalake", LAKE) == entries_of(first, renumbered=True)
    old = source.run(
        source.ctx("ana").read(RequestScope(LAKE, "main"), lambda request_view: table_load(request_view, ("a",), "t"))
    )
    new = target.run(
        target.ctx("ana").read(RequestScope(COPY, "main"), lambda request_view: table_load(request_view, ("a",), "t"))
    )
    assert new.body == old.body
    with pytest.raises(PermissionDenied):
        target.run(
            target.ctx("bob").read(
                RequestScope(COPY, "main"),
                lambda request_view: table_load(request_view, ("a", "b", "c d"), "ünïcode 表"),
            )
        )


def test_import_can_preserve_ids(source: ServiceDesk, target: ServiceDesk) -> None:
    """With `ids=keep`, a store that has never used the ids keeps them, and later objects get other ids."""
    data = exported(source)
    imported(target, data, ids="keep", name=LAKE)

    assert entries_of(exported(target), renumbered=False) == entries_of(data, renumbered=False)
    target.namespace("new")
    target.table("new", "t")
    with pytest.raises(
        BadRequest, match=r"^Record 2: id \d+ is or was used for another object in this store.*--ids map"
    ):
        imported(target, data, ids="keep", name="other")


def test_imported_objects_are_invisible_until_published(source: ServiceDesk, other: ServiceDesk) -> None:
    """Imported objects are invisible until the last step publishes all of them."""
    records = records_of(exported(source))
    job = fed(other, begin_import(other), records)

    with pytest.raises(NotFound):
        other.run(other.ctx().read(RequestScope(COPY), lambda request_view: request_view.metalake))
    assert other.run(metalakes_visible(other.ctx())) == []
    assert [each.records for each in other.run(imports_list(other.ctx()))] == [len(records)]
    other.run(import_finish(other.ctx(), job.id))
    assert [node.name for node in other.run(metalakes_visible(other.ctx()))] == [COPY]
    assert other.run(imports_list(other.ctx())) == []


def test_secrets_are_exported_only_for_owning_service_admin(source: ServiceDesk, other: ServiceDesk) -> None:
    """An export contains secrets only if a service admin who owns the metalake asks for them."""
    owned = owner_set(
        source.ctx(), metalake=LAKE, kind=Kind.METALAKE, full_name=LAKE, owner_kind=Kind.USER, owner="ana"
    )
    data = exported(source, secrets=True)

    assert SECRET.encode() in data
    assert SECRET.encode() not in exported(source)
    assert imported(other, data) == ()
    source.run(owned)
    assert exported(source, user="ana")
    for user, secrets in (("ana", True), (ADMIN, False), (ADMIN, True), ("bob", False)):
        with pytest.raises(PermissionDenied):
            exported(source, user=user, secrets=secrets)


def test_password_in_warehouse_url_is_not_exported(source: ServiceDesk) -> None:
    """A password in a catalog's warehouse URL is not exported."""
    creation = catalog_create(
        source.ctx(),
        metalake=LAKE,
        name="far",
        catalog_type=None,
        provider="lakehouse-iceberg",
        comment=None,
        properties={"warehouse": f"s3://ana:{SECRET}@bucket/far"},
    )
    source.run(creation)

    data = exported(source)

    assert b"bucket/far" in data
    assert SECRET.encode() not in data


def test_secrets_are_not_exported_without_access_control(sqlite_template: Path, tmp_path: Path) -> None:
    """With access control off, secrets are never exported, because every user could request them."""
    lab = StoreLab(sqlite_copy(sqlite_template, tmp_path))
    desk = desk_at(lab, tmp_path, access=False)
    desk.run(fill(desk.ctx()))

    with pytest.raises(PermissionDenied, match="Access control is off"):
        exported(desk, secrets=True)
    assert len(records_of(exported(desk))) >= 4
    desk.node.services.files.close()
    lab.close()


@pytest.mark.parametrize("user", ["ana", "nobody"])
def test_imports_need_a_service_admin(source: ServiceDesk, user: str) -> None:
    """Each request about an import needs a service admin."""
    job = begin_import(source)
    for request in (
        lambda: import_begin(source.ctx(user), name="x", form="json", ids="map"),
        lambda: imports_list(source.ctx(user)),
        lambda: import_load(source.ctx(user), job.id),
        lambda: feed(source.ctx(user), job.id, after=0, data=b""),
        lambda: import_finish(source.ctx(user), job.id),
        lambda: import_give_up(source.ctx(user), job.id),
    ):
        with pytest.raises(PermissionDenied):
            source.run(request())


def _dangling(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("table")).table.namespace_id = 77


def _cycle(records: list[ExportRecord]) -> None:
    inner = next(each for each in records if each.namespace.name == "b").namespace
    inner.parent_id = next(each for each in records if each.namespace.name == "c d").namespace.id


def _doubled(records: list[ExportRecord]) -> None:
    tables = [each for each in records if each.WhichOneof("record") in ("table", "entity") and each.pointer.location]
    tables[0].table.name = "v"


def _same_id(records: list[ExportRecord]) -> None:
    namespaces = [each for each in records if each.HasField("namespace")]
    namespaces[1].namespace.id = namespaces[0].namespace.id


def _newer(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("role")).role.version.major_version = 2


def _no_owner(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("catalog")).owner_id = 4


def _tag_as_owner(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("table")).owner_id = records[1].metalake.id


def _elsewhere(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("table")).pointer.metadata_location = "file:///elsewhere/x.json"


def _lost(records: list[ExportRecord]) -> None:
    pointer = next(each for each in records if each.HasField("table")).pointer
    pointer.metadata_location = pointer.metadata_location.replace(".metadata", "x.metadata")


def _another(records: list[ExportRecord]) -> None:
    first, second = [each.pointer for each in records if each.HasField("table")]
    first.metadata_location = second.metadata_location


def _bad_name(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("namespace")).namespace.name = ".."


def _separator(records: list[ExportRecord]) -> None:
    next(each for each in records if each.namespace.name == "a").namespace.name = "a:b"


def _wrong_catalog(records: list[ExportRecord]) -> None:
    other = next(each for each in records if each.catalog.name == "models").catalog.id
    next(each for each in records if each.namespace.name == "c d").namespace.catalog_id = other


def _wrong_kind(records: list[ExportRecord]) -> None:
    next(each for each in records if each.entity.kind == "topic").entity.kind = "job"


def _privilege(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("grant")).grant.privilege = "use_everything"


def _binding(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("grant")).grant.privilege = "create_catalog"


def _counted(records: list[ExportRecord]) -> None:
    del records[-2]


def _second_header(records: list[ExportRecord]) -> None:
    records[5] = records[0]


def _version_twice(records: list[ExportRecord]) -> None:
    records.insert(-1, next(each for each in records if each.HasField("model_version")))


def _statistic(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("statistic")).statistic.value = "seven"


def _elsewhere_staged(records: list[ExportRecord]) -> None:
    record = ExportRecord()
    record.lance_version.table_id = next(each for each in records if each.HasField("table")).table.id
    record.lance_version.scheme = record.lance_version.number = 1
    record.lance_version.staged = "../../../victim"
    records.insert(-1, record)


def _script_as_url(records: list[ExportRecord]) -> None:
    dashboard = next(each.entity.object for each in records if each.entity.name == "board")
    dashboard.fields = '{"url": "javascript:alert(1)"}'


def _provider(records: list[ExportRecord]) -> None:
    next(each for each in records if each.HasField("catalog")).catalog.provider = "quantum"


def _double(records: list[ExportRecord]) -> None:
    next(each for each in records if each.principal.name == ADMIN).principal.name = f"{ADMIN}\u200b"


def _look_alike(records: list[ExportRecord]) -> None:
    users = [each for each in records if each.HasField("principal") and each.principal.kind == "user"]
    users[-2].principal.name, users[-1].principal.name = "scope", "\u0455\u0441\u043e\u0440\u0435"


WRONG: dict[str, tuple[Callable[[list[ExportRecord]], None], str]] = {
    "dangling": (_dangling, r"it names 77, which no earlier record defines"),
    "cycle": (
        _cycle,
        r"no earlier record defines: it is missing in the file, follows later, or the two contain each other",
    ),
    "doubled name": (_doubled, r"an earlier object has the same name in the same place"),
    "doubled id": (_same_id, r"an earlier object has id \d+"),
    "newer": (_newer, r"schema version 2\.0; this server reads version 1\.x"),
    "no owner": (_no_owner, r"it names 4, which no earlier record"),
    "owner of no kind": (_tag_as_owner, r"as a user or group, which is a metalake"),
    "outside": (_elsewhere, r"elsewhere"),
    "lost file": (_lost, r"there is no such file"),
    "another table's": (_another, r"another table has replaced it"),
    "bad name": (_bad_name, r"\.\."),
    "separator": (_separator, r"contains ':', the separator of this server"),
    "wrong catalog": (_wrong_catalog, r"which is in another catalog"),
    "kind": (_wrong_kind, r"'job' is not a kind of object"),
    "privilege": (_privilege, r"Unknown privilege 'use_everything'"),
    "binding": (_binding, r"cannot be granted on a"),
    "fewer": (_counted, r"the file declares another number of records"),
    "second header": (_second_header, r"an export must have one header"),
    "version twice": (_version_twice, r"version 0 of the model is in an earlier record"),
    "statistic": (_statistic, r"is not JSON"),
    "file elsewhere": (_elsewhere_staged, r"is not the name of a staged manifest"),
    "user's double": (_double, r"U\+200B is not allowed"),
    "look-alike": (_look_alike, r"looks like scope"),
    "own fields": (_script_as_url, r"dashboard board has own fields that this version cannot import"),
    "provider": (_provider, r"Catalog main cannot have the provider quantum"),
}


def test_invalid_record_is_refused_with_its_number(source: ServiceDesk, other: ServiceDesk) -> None:
    """An invalid record is refused with its number. Nothing of its chunk is stored, so the client can send the
    corrected chunk.
    """
    data = exported(source)
    for name, (spoil, words) in WRONG.items():
        job = begin_import(other)
        records = records_of(data)
        spoil(records)
        with pytest.raises(BadRequest, match=rf"^Record \d+[: ].*(?:{words})") as caught:
            fed(other, job, records, at_once=3)
        number = int(re.findall(r"\d+", caught.value.message)[0])
        stored_count = other.run(import_load(other.ctx(), job.id)).records
        assert stored_count < number <= stored_count + 3, name
        other.run(import_give_up(other.ctx(), job.id))
        wipe(other)
    job = fed(other, begin_import(other), records_of(data))
    other.run(import_finish(other.ctx(), job.id))
    assert len(entries_of(exported(other, metalake=COPY), renumbered=True)) == len(entries_of(data, renumbered=True))


def wipe(desk: ServiceDesk) -> None:
    """Run the task that deletes abandoned imports."""

    async def work() -> None:
        for (import_id,) in desk.rows("SELECT id FROM metalake_import WHERE state IN ('done', 'given-up')"):
            while await desk.node.store.submit(
                upkeep_permit("test"), lambda tx, at=import_id: tx.imports.prune(at, limit=PRUNED_AT_ONCE)
            ):
                pass

    desk.run(work())


def test_abandoned_import_is_deleted(source: ServiceDesk, target: ServiceDesk) -> None:
    """The task deletes all rows of an abandoned import, so that its ids and locations can be used again. It does not
    touch completed imports.
    """
    data = exported(source)
    empty = counts(target)
    job = fed(target, begin_import(target, ids="keep"), records_of(data))
    target.run(import_give_up(target.ctx(), job.id))
    wipe(target)

    assert counts(target) == empty
    imported(target, data, ids="keep")
    imported_counts = counts(target)
    wipe(target)
    assert {key: value for key, value in counts(target).items() if value != imported_counts[key]} == {
        "metalake_import": 0,
        "import_object": 0,
        "clock": imported_counts["clock"] - 1,
    }
    assert target.run(
        target.ctx("ana").read(RequestScope(COPY, "main"), lambda request_view: table_load(request_view, ("a",), "t"))
    ).body


def counts(desk: ServiceDesk) -> dict[str, int]:
    """Return the number of rows of each table, except tasks and changes."""
    tables = (
        "node",
        "owner",
        "principal",
        "role",
        "access_grant",
        "role_member",
        "group_member",
        "tag_object",
        "policy_object",
        "statistic",
        "document",
        "protection",
        "clock",
        "model_version",
        "model_alias",
        "metalake_import",
        "import_object",
        "dependency",
        "lance_version",
        "pipeline_version",
    )
    return {table: desk.rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables}


def test_truncated_file_is_detected_and_import_continues(source: ServiceDesk, other: ServiceDesk) -> None:
    """A file that is truncated within a record or between two is detected, and the import continues at the reported
    record.
    """
    data = exported(source)
    records = records_of(data)
    job = fed(other, begin_import(other), records[:9], at_once=4)

    with pytest.raises(BadRequest, match=r"Record 10 is truncated: the file ends in the middle of it"):
        other.run(feed(other.ctx(), job.id, after=9, data=encode_records(records[9:10], "proto")[:-3]))
    with pytest.raises(BadRequest, match=r"has 9 records, but not the file's last one.*truncated: export again"):
        other.run(import_finish(other.ctx(), job.id))
    with pytest.raises(CommitConflict, match="has 9 records: send the following ones"):
        other.run(feed(other.ctx(), job.id, after=4, data=encode_records(records[4:6], "proto")))
    job = other.run(import_load(other.ctx(), job.id))
    fed(other, job, records)
    assert other.run(import_finish(other.ctx(), job.id)).records == len(records)
    with pytest.raises(NotFound, match="does not exist, is complete or was abandoned"):
        other.run(import_finish(other.ctx(), job.id))


def test_bytes_that_are_no_export_are_refused(other: ServiceDesk) -> None:
    """Bytes that are not an export are refused in both formats, and so are requests without records or with more than
    500.
    """
    proto_import, lines = begin_import(other), begin_import(other, name="lines", form="json")
    for at, data in (
        (proto_import, b"\x05abc"),
        (proto_import, frame_message(b"\xff\xff\xff")),
        (proto_import, b"\xff" * 12),
        (proto_import, frame_message(b"")),
        (proto_import, b""),
        (lines, b"{}\n"),
        (lines, b"{\n"),
        (lines, b"[1]\n"),
        (lines, b'{"header": {"wings": 2}}\n'),
        (lines, b"\xff\n"),
        (lines, b"\n\n"),
    ):
        with pytest.raises(BadRequest, match=r"^(Record 1|One request)"):
            other.run(feed(other.ctx(), at.id, after=0, data=data))
    one = encode_records([ExportRecord.FromString(header())] * 501, "proto")
    with pytest.raises(BadRequest, match="1 to 500 records"):
        other.run(feed(other.ctx(), proto_import.id, after=0, data=one))


def header() -> bytes:
    """Return the bytes of a header."""
    record = ExportRecord()
    record.header.version.major_version = 1
    return record.SerializeToString()


def test_taken_name_is_refused_at_start_and_end_of_import(source: ServiceDesk, other: ServiceDesk) -> None:
    """A taken name is refused at the beginning of the import, and at its end if it was taken meanwhile. The import can
    then be abandoned.
    """
    other.run(fill(other.ctx()))
    with pytest.raises(AlreadyExists, match="Metalake lake already exists: import under another name"):
        begin_import(other, name=LAKE)
    job = fed(other, begin_import(other), records_of(exported(source)))
    other.run(metalake_create(other.ctx(), name=COPY, comment=None, properties={}))

    with pytest.raises(AlreadyExists):
        other.run(import_finish(other.ctx(), job.id))
    other.run(import_give_up(other.ctx(), job.id))


def test_importer_owns_metalake_without_owner(source: ServiceDesk, other: ServiceDesk) -> None:
    """If the file names no owner of the metalake, the importing user becomes its owner."""
    records = records_of(exported(source))
    records[1].owner_id = 0
    retained_records = [each for each in records if each.principal.name != ADMIN]
    assert len(retained_records) == len(records) - 1
    for each in retained_records:
        if each.owner_id == records[2].principal.id:
            each.owner_id = 0
    retained_records = [
        each for each in retained_records if each.link.kind != "holder" or each.link.from_id != records[2].principal.id
    ]
    for each in retained_records:
        if each.entity.kind == "view":
            each.entity.view.writer_id = 0
    retained_records[-1].trailer.records = len(retained_records)
    job = fed(other, begin_import(other), retained_records)
    other.run(import_finish(other.ctx(), job.id))

    assert exported(other, metalake=COPY)
    changes = other.rows(
        "SELECT operation, kind FROM change WHERE zone = 0 AND revision = (SELECT max(revision) FROM change WHERE zone"
        " = 0) ORDER BY ordinal"
    )
    assert changes == [("create", Kind.METALAKE)]  # and nothing else: the user existed already


def test_export_is_a_consistent_snapshot(source: ServiceDesk) -> None:
    """An export is a consistent snapshot: it contains nothing that is committed while it is read."""

    async def read() -> bytes:
        stream = metalake_export(source.ctx(), metalake=LAKE, form="proto")
        pieces = [await anext(stream)]
        await principal_add(source.ctx(), metalake=LAKE, kind=Kind.USER, name="late")
        await metalake_object_create(
            source.ctx(), metalake=LAKE, kind=Kind.TAG, name="late", record=TagRecord(comment=None, properties={})
        )
        return b"".join([*pieces, *[piece async for piece in stream]])

    before = exported(source)
    beside = source.run(read())
    assert entries_of(beside, renumbered=False) == entries_of(before, renumbered=False)
    assert b"late" in exported(source)


def test_large_metalake_is_exported_and_imported_in_pages(source: ServiceDesk, target: ServiceDesk) -> None:
    """With many objects, an export and an import work in pages of bounded size, and the imported objects equal the
    exported ones.
    """
    crowd(source, CROWD)
    began = time.process_time()
    pieces, largest = _pieces(source)
    exported_at = time.process_time()
    job = begin_import(target, form="proto")
    for after, part in _parts(pieces):
        job = target.run(feed(target.ctx(), job.id, after=after, data=part))
    target.run(import_finish(target.ctx(), job.id))
    imported_at = time.process_time()

    print(
        f"{job.records} records, {sum(map(len, pieces)) / 1e6:.1f} MB: export {exported_at - began:.1f} s, import"
        f" {imported_at - exported_at:.1f} s of CPU; largest piece {largest / 1e3:.0f} kB; process"
        f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB"
    )
    assert job.records > CROWD
    assert largest < 200_000
    again, _ = _pieces(target, metalake=COPY)
    assert digest(again) == digest(pieces)


def crowd(desk: ServiceDesk, count: int) -> None:
    """Create topics, all owned by ana, in namespaces of a thousand topics each."""

    def make(tx: Tx, permit: Permit[int]) -> None:
        space = tx.nodes.create(
            kind=Kind.NAMESPACE,
            space="namespace",
            name=f"crowd {permit.command}",
            parent_id=catalog,
            zone=catalog,
            record=NamespaceRecord("a crowd", {"number": str(permit.command)}),
        )
        for number in range(min(1000, count - permit.command)):
            tx.nodes.create(
                kind=Kind.TOPIC,
                space="topic",
                name=f"topic {number}",
                parent_id=space.id,
                zone=catalog,
                record=TopicRecord(None, {"k": "v"}),
                owner_id=owner,
            )

    catalog = desk.rows("SELECT id FROM node WHERE name = 'queues'")[0][0]
    owner = desk.rows("SELECT id FROM principal WHERE name = 'ana'")[0][0]
    for start in range(0, count, 1000):
        permit = desk.lab.permit(catalog).about(start)
        desk.run(desk.node.store.submit(permit, partial(_make_objects, make, permit)))


def _make_objects(make: Callable[[Tx, Permit[int]], None], permit: Permit[int], tx: Tx) -> None:
    make(tx, permit)


def _pieces(desk: ServiceDesk, *, metalake: str = LAKE) -> tuple[list[bytes], int]:
    async def read() -> list[bytes]:
        return [piece async for piece in metalake_export(desk.ctx(), metalake=metalake, form="proto")]

    pieces = desk.run(read())
    return pieces, max(map(len, pieces))


def _parts(pieces: list[bytes]) -> Iterator[tuple[int, bytes]]:
    after = 0
    for part in cut_into_parts(pieces, "proto"):
        yield after, part.data
        after += part.records


def digest(pieces: list[bytes]) -> list[tuple[str, str, str]]:
    """Return kind, name and owner of every object in order, with ids replaced by their order of appearance."""
    seen: dict[int, int] = {}
    entries = []
    for record in records_of(b"".join(pieces)):
        word = record.WhichOneof("record") or ""
        message = getattr(record, word)
        if hasattr(message, "id"):
            seen[message.id] = len(seen)
        if word not in ("metalake", "header"):
            entries.append((word, str(getattr(message, "name", "")), str(seen.get(record.owner_id))))
    return entries
