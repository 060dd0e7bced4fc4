# SPDX-License-Identifier: Apache-2.0
"""Filesets and topics over Gravitino REST: file locations from templates and containers, within the allowed roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.model.permits import upkeep_permit
from limnos.services.storage.fileset_purges import FILESET_PURGE
from limnos.services.upkeep.trash import trash_sweep
from limnos.store.sql import Sql
from tests.http.driver import API, OWN, DriverNode, grant

CATALOG = f"{API}/lake/catalogs/files"
FILESETS = f"{CATALOG}/schemas/raw/filesets"


@pytest.fixture
def files(node: DriverNode) -> DriverNode:
    """A node with a catalog for filesets and a schema in it."""
    catalog = node.done("POST", f"{API}/lake/catalogs", {"name": "files", "type": "fileset"})["catalog"]
    assert (catalog["type"], catalog["provider"]) == ("fileset", "fileset")
    node.done("POST", f"{CATALOG}/schemas", {"name": "raw"})
    return node


def make(node: DriverNode, **body: object) -> dict:
    """Create a fileset."""
    return node.done("POST", FILESETS, {"name": "f", **body})["fileset"]


def warehouse(node: DriverNode) -> str:
    """Return a location within the catalog's warehouse."""
    location = make(node, name="probe")["storageLocation"]
    return str(location).rpartition("/")[0]


def test_fileset_lifecycle(files: DriverNode) -> None:
    """A fileset is loaded, listed, changed, renamed, dropped and restored; its directory is created, and stays."""
    fileset = make(files, comment="c", properties={"k": "v"}, storageLocations={})
    directory = Path(str(fileset["storageLocation"]).removeprefix("file://"))
    changes = [
        {"@type": "rename", "newName": "g"},
        {"@type": "removeComment"},
        {"@type": "setProperty", "property": "a", "value": "b"},
    ]
    altered = files.done("PUT", f"{FILESETS}/f", {"updates": changes})["fileset"]
    listed = files.done("GET", FILESETS)["identifiers"]
    dropped = [files.done("DELETE", f"{FILESETS}/g")["dropped"] for _ in range(2)]
    trash = f"{OWN}/metalakes/lake/catalogs/files/trash"
    (trash_entry,) = files.get(trash).json()["trash"]
    files.done("POST", f"{trash}/{trash_entry['id']}/undrop", {})

    assert (fileset["type"], fileset["comment"], fileset["audit"]["creator"]) == ("managed", "c", "admin")
    assert fileset["storageLocations"] == {"unknown": fileset["storageLocation"]}
    assert fileset["properties"] == {"k": "v", "default-location-name": "unknown"}
    assert directory.is_dir()
    assert (altered["name"], altered.get("comment"), altered["properties"]["a"]) == ("g", None, "b")
    assert listed == [{"namespace": ["lake", "files", "raw"], "name": "g"}]
    assert dropped == [True, False]
    assert files.done("GET", f"{FILESETS}/g")["fileset"]["storageLocations"] == fileset["storageLocations"]


def test_the_name_of_a_new_fileset_is_percent_decoded_once(files: DriverNode) -> None:
    """The server percent-decodes the name in the body once, because the Java client encodes it."""
    assert make(files, name="day%3D1")["name"] == "day=1"
    assert files.done("GET", f"{FILESETS}/day%3D1")["fileset"]["name"] == "day=1"


def test_location_is_inherited_and_placeholders_replaced(files: DriverNode) -> None:
    """A schema's location overrides the catalog's. Placeholders in it are replaced by names, the user and
    properties.
    """
    root = warehouse(files)
    properties = [{"@type": "setProperty", "property": "location", "value": f"{root}/cat"}]
    files.done("PUT", CATALOG, {"updates": properties})
    of_catalog = make(files, name="one")["storageLocation"]
    template = f"{root}/{{{{catalog}}}}-{{{{user}}}}/{{{{schema}}}}/{{{{fileset}}}}/{{{{team}}}}"
    filled = make(files, name="two", storageLocation=template, properties={"placeholder-team": "ops"})[
        "storageLocation"
    ]
    files.done("PUT", f"{CATALOG}/schemas/raw", {"updates": [{**properties[0], "value": f"{root}/sch"}]})
    of_schema = make(files, name="three")["storageLocation"]

    assert (of_catalog, filled, of_schema) == (
        f"{root}/cat/raw/one",
        f"{root}/files-admin/raw/two/ops",
        f"{root}/sch/three",
    )


def test_connection_test_and_alter_refuse_locations_outside_roots(files: DriverNode) -> None:
    """A connection test with `updates` and the alter both refuse a location outside of the allowed roots."""
    edit = {"updates": [{"@type": "setProperty", "property": "location", "value": "file:///etc"}]}
    tested, altered = files.post(f"{CATALOG}/testConnection", edit).json(), files.put(CATALOG, edit).json()
    assert (tested["code"], altered["code"]) == (1001, 1001)
    assert "Location file:///etc is not below a root" in tested["message"]


def test_location_is_selected_by_name_or_default(files: DriverNode) -> None:
    """The location named in the request is used, or the one named by `default-location-name`. An unknown location name
    is refused with 404, and several locations without a default are refused with 400.
    """
    root = warehouse(files)
    both = {"a": f"{root}/a", "b": f"{root}/b"}
    unclear = files.post(FILESETS, {"name": "f", "storageLocations": both})
    fileset = make(files, storageLocations=both, properties={"default-location-name": "b"})

    def location(query: str) -> object:
        answer = files.get(f"{FILESETS}/f/location?sub_path=x%2Fy{query}")
        return answer["fileLocation"] if answer.status == 200 else (answer.status, answer["type"])

    assert unclear.status == 400
    assert (fileset["storageLocations"], fileset["storageLocation"]) == (both, f"{root}/b")
    assert (location(""), location("&location_name=a")) == (f"{root}/b/x/y", f"{root}/a/x/y")
    assert location("&location_name=c") == (404, "NoSuchLocationNameException")
    assert files.get(f"{FILESETS}/f/location").status == 400


def test_create_without_create_fileset_makes_no_directory(files: DriverNode) -> None:
    """A create by a user without CREATE_FILESET is refused and creates no directory. With the privilege, the directory
    is created.
    """
    place = Path(warehouse(files).removeprefix("file://"))
    grant(files, "ana", "use_catalog use_schema", kind="METALAKE", on="lake")
    existing_entries = sorted(place.iterdir())
    refused = files.ask("POST", FILESETS, {"name": "mine"}, user="ana").status
    left = sorted(place.iterdir())
    grant(files, "ana", "create_fileset", kind="METALAKE", on="lake")
    allowed_status = files.ask("POST", FILESETS, {"name": "mine"}, user="ana").status

    assert (refused, left, allowed_status) == (403, existing_entries, 200)
    assert len(list(place.iterdir())) == len(existing_entries) + 1


def test_files_are_listed_after_directories_and_without_links(files: DriverNode, tmp_path: Path) -> None:
    """Directories are listed before files, which have sizes. Links and files outside of the fileset are not listed."""
    directory = Path(str(make(files)["storageLocation"]).removeprefix("file://"))
    (directory / "day=1").mkdir()
    (directory / "day=1" / "deep.csv").write_text("1")
    (directory / "a.csv").write_text("123")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s.txt").write_text("s")
    (directory / "link").symlink_to(tmp_path / "secret")

    top = files.done("GET", f"{FILESETS}/f/files")["files"]
    below = files.done("GET", f"{FILESETS}/f/files?sub_path=%2Fday%3D1")["files"]

    assert [(each["name"], each["isDir"], each["size"], each["path"]) for each in top] == [
        ("day=1", True, 0, "/fileset/files/raw/f"),
        ("a.csv", False, 3, "/fileset/files/raw/f"),
    ]
    assert [(each["name"], each["path"]) for each in below] == [("deep.csv", "/fileset/files/raw/f/day=1")]
    assert files.done("GET", f"{FILESETS}/f/files?sub_path=link")["files"] == []
    assert files.get(f"{FILESETS}/f/files?sub_path=..%2F..%2Fx").status == 400
    assert files.get(f"{FILESETS}/f/location?sub_path=..%2Fx").status == 400


@pytest.mark.parametrize(
    "body",
    [
        {"type": "external"},
        {"type": "borrowed"},
        {"storageLocation": "file:///etc"},
        {"storageLocation": "/etc/passwd"},
        {"storageLocation": "file:///w/{{none}}"},
        {"storageLocations": {"": "file:///w"}},
        {"storageLocation": "nowhere"},
        {"storageLocation": "file:///{{team}}", "properties": {"placeholder-team": "../.."}},
    ],
    ids=str,
)
def test_missing_or_outside_location_returns_400(files: DriverNode, body: dict) -> None:
    """A location outside of the roots, or a missing one, is 400, and nothing is created."""
    answer = files.post(FILESETS, {"name": "f", **body})

    assert (answer.status, answer["code"]) == (400, 1001)
    assert files.done("GET", FILESETS)["identifiers"] == []


def test_catalog_cannot_set_locations_outside_the_allowed_roots(files: DriverNode) -> None:
    """A catalog cannot set locations that the server does not allow, at its creation or later."""
    answers = [
        files.post(f"{API}/lake/catalogs", {"name": "x", "type": "fileset", "properties": {"location": "file:///etc"}}),
        files.put(CATALOG, {"updates": [{"@type": "setProperty", "property": "location-x", "value": "file:///etc"}]}),
    ]

    assert [answer.status for answer in answers] == [400, 400]


def directory_of(fileset: dict) -> Path:
    """Return the local directory of a fileset's files."""
    return Path(str(fileset["storageLocation"]).removeprefix("file://"))


def fill(fileset: dict) -> Path:
    """Write files into a fileset. Returns its directory."""
    directory = directory_of(fileset)
    (directory / "day=1").mkdir(parents=True)
    (directory / "day=1" / "a.csv").write_text("1")
    (directory / "b.csv").write_text("2")
    return directory


def upkeep(node: DriverNode) -> None:
    """Advance the time beyond the trash retention, and run the due tasks."""
    store = node.built.services.store
    node.runner.run(store.submit(upkeep_permit("t"), lambda tx: tx.count(Sql("UPDATE trash SET expires_at = 0"), {})))
    node.runner.run(store.submit(upkeep_permit("t"), trash_sweep))
    while node.runner.run(node.built.upkeep.run_one()):
        pass


def purge_results(node: DriverNode) -> list[str]:
    """Return the results of the finished fileset purges."""
    tasks = node.get(f"{OWN}/tasks?state=done").json()["tasks"]
    return [str(each["result"]) for each in tasks if each["kind"] == FILESET_PURGE]


def test_files_of_a_purged_managed_fileset_are_deleted(files: DriverNode) -> None:
    """The files of a managed fileset are deleted once it can no longer be restored. Files of external filesets stay,
    and links are not followed.
    """
    managed = fill(make(files, name="m"))
    root = managed.parent
    outside = root / "outside"
    outside.mkdir()
    (outside / "x.csv").write_text("x")
    (managed / "link").symlink_to(outside)
    external = root / "ext"
    external.mkdir()
    (external / "e.csv").write_text("e")
    make(files, name="e", type="external", storageLocation=f"file://{external}")

    for name in ("m", "e"):
        files.done("DELETE", f"{FILESETS}/{name}")
    exists_before_purge = (managed / "b.csv").exists()
    upkeep(files)

    assert exists_before_purge
    assert not (managed / "b.csv").exists()
    assert not (managed / "day=1").exists()
    assert (outside / "x.csv").exists()
    assert (external / "e.csv").exists()


def test_purge_keeps_files_at_overlapping_filesets(files: DriverNode) -> None:
    """Another fileset at, above or below the location keeps all files, and the task's result says so."""
    directory = fill(make(files, name="m"))
    make(files, name="other", type="external", storageLocation=f"file://{directory}-2/day=1")
    older = Sql(f"UPDATE place SET location = 'file://{directory}/day=1' WHERE location = 'file://{directory}-2/day=1'")
    store = files.built.services.store
    files.runner.run(store.submit(upkeep_permit("t"), lambda tx: tx.count(older, {})))  # an older release allowed it
    files.done("DELETE", f"{FILESETS}/m")
    upkeep(files)

    (purge_result,) = purge_results(files)
    assert (directory / "b.csv").exists()
    assert f"another fileset or a table is at file://{directory}/day=1" in purge_result


def test_overlapping_location_of_another_fileset_is_refused(files: DriverNode) -> None:
    """A fileset at, above or below another one's location is refused; external filesets of one catalog may overlap."""
    root = warehouse(files)
    make(files, name="m", storageLocation=f"{root}/a/b")
    places = {"at": f"{root}/a/b", "below": f"{root}/a/b/c", "above": f"{root}/a"}
    refused = {key: files.post(FILESETS, {"name": key, "storageLocation": at}) for key, at in places.items()}
    external = {
        key: files.post(FILESETS, {"name": key, "type": "external", "storageLocation": at})
        for key, at in places.items()
    }
    beside = make(files, name="beside", storageLocation=f"{root}/a/bc")["name"]
    shared = [
        make(files, name=f"e{at.count('/')}", type="external", storageLocation=at)["name"]
        for at in (f"{root}/x", f"{root}/x/y")
    ]

    assert {key: (each.status, each["code"]) for key, each in refused.items()} == dict.fromkeys(places, (400, 1001))
    assert {key: each.status for key, each in external.items()} == dict.fromkeys(places, 400)
    assert all("Another managed fileset is" in str(each["message"]) for each in (*refused.values(), *external.values()))
    assert (len(shared), beside) == (2, "beside")


def test_dropped_location_can_be_reused_by_the_dropping_user(files: DriverNode) -> None:
    """The user who dropped a fileset may create another one at its location, which gets the files. Other users are
    refused while the fileset can be restored.
    """
    root = warehouse(files)
    directory = fill(make(files, name="m", storageLocation=f"{root}/a"))
    files.done("DELETE", f"{FILESETS}/m")
    grant(files, "ann", "use_catalog use_schema create_fileset", kind="catalog", on="files")
    other = files.ask("POST", FILESETS, {"name": "n", "storageLocation": f"{root}/a"}, user="ann")
    own = files.post(FILESETS, {"name": "n", "storageLocation": f"{root}/a"})
    upkeep(files)

    assert (other.status, own.status) == (400, 200)
    assert (directory / "b.csv").exists()
    assert purge_results(files) == []


def test_location_with_pending_purge_returns_503(files: DriverNode) -> None:
    """Until the purge has run, no fileset can be created at the location, not even an external one; the answer is 503.
    Afterwards the location is free.
    """
    fileset = make(files, name="m")
    directory = fill(fileset)
    store = files.built.services.store
    files.done("DELETE", f"{FILESETS}/m")
    files.runner.run(store.submit(upkeep_permit("t"), lambda tx: tx.count(Sql("UPDATE trash SET expires_at = 0"), {})))
    files.runner.run(store.submit(upkeep_permit("t"), trash_sweep))
    body = {"name": "n", "type": "external", "storageLocation": f"file://{directory}/day=1"}
    early = files.post(FILESETS, body)
    upkeep(files)
    late = files.post(FILESETS, body)

    assert (early.status, early.headers["retry-after"], late.status) == (503, "5", 200)
    assert not (directory / "b.csv").exists()


def test_topic_lifecycle(node: DriverNode) -> None:
    """A topic is created, loaded, listed, changed and dropped; topics cannot be renamed."""
    node.done("POST", f"{API}/lake/catalogs", {"name": "bus", "type": "messaging"})
    node.done("POST", f"{API}/lake/catalogs/bus/schemas", {"name": "default"})
    topics = f"{API}/lake/catalogs/bus/schemas/default/topics"

    topic = node.done("POST", topics, {"name": "t", "comment": "c", "properties": {"partition-count": "3"}})["topic"]
    changes = [
        {"@type": "updateComment", "newComment": "d"},
        {"@type": "removeProperty", "property": "partition-count"},
    ]
    altered = node.done("PUT", f"{topics}/t", {"updates": changes})["topic"]
    renamed = node.put(f"{topics}/t", {"updates": [{"@type": "rename", "newName": "u"}]})
    listed = node.done("GET", topics)["identifiers"]
    dropped = [node.done("DELETE", f"{topics}/t")["dropped"] for _ in range(2)]

    assert (topic["name"], topic["comment"], topic["properties"]) == ("t", "c", {"partition-count": "3"})
    assert (altered["comment"], altered["properties"], renamed.status) == ("d", {}, 400)
    assert listed == [{"namespace": ["lake", "bus", "default"], "name": "t"}]
    assert dropped == [True, False]
    assert node.get(f"{topics}/t")["type"] == "NoSuchTopicException"


def test_used_name_returns_409_whatever_the_location(files: DriverNode) -> None:
    """A name in use is refused with 409 and Gravitino's exception, whatever the location. A user without the privilege
    gets 403 instead.
    """
    fileset = make(files)

    for place in ("file:///elsewhere", fileset["storageLocation"]):
        body = {"name": "f", "type": "external", "storageLocation": place}
        conflict = files.post(FILESETS, body)
        assert (conflict.status, conflict["type"]) == (409, "FilesetAlreadyExistsException"), conflict.body
        assert files.post(FILESETS, body, user="ana").status == 403


def test_refused_external_location_has_advice(files: DriverNode, tmp_path: Path) -> None:
    """The refusal of an external location says what the owner and what the operator can change."""
    body = {"name": "e", "type": "external", "storageLocation": f"file://{tmp_path}/far"}
    answer = files.post(FILESETS, body)

    assert answer.status == 400
    assert "property 'allowed-locations'" in str(answer["message"])
    advice = f"--allow-root file://{tmp_path}/far, or a directory above it (setting storage.allowed_roots)"
    assert advice in str(answer["message"])


def test_create_by_a_reader_makes_no_directory(files: DriverNode) -> None:
    """A create by a user who may only list and read filesets is refused and creates no directory."""
    place = Path(warehouse(files).removeprefix("file://"))
    before = sorted(place.rglob("*"))
    grant(files, "ana", "use_catalog use_schema read_fileset", kind="CATALOG", on="files")

    assert files.ask("POST", FILESETS, {"name": "secret"}, user="ana").status == 403
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("name", ["default-location-name", "placeholder-team"])
@pytest.mark.parametrize("change", ["setProperty", "removeProperty"])
def test_properties_that_decide_the_location_cannot_change(files: DriverNode, name: str, change: str) -> None:
    """They are as fixed as the locations: with another value the fileset would have no files."""
    make(files, properties={"a": "b"})
    update = {"@type": change, "property": name} | ({"value": "other"} if change == "setProperty" else {})

    answer = files.ask("PUT", f"{FILESETS}/f", {"updates": [update]})

    assert answer.status == 400
    assert "fixed when it is created" in str(answer["message"])
    assert files.done("GET", f"{FILESETS}/f")["fileset"]["properties"] == {"a": "b", "default-location-name": "unknown"}


def test_two_values_of_one_location_are_refused(files: DriverNode) -> None:
    """`storageLocation` is the location with the name `unknown`: another value of that name is refused."""
    base = warehouse(files)
    both = {"name": "g", "storageLocation": f"{base}/g", "storageLocations": {"unknown": f"{base}/h"}}

    other = files.post(FILESETS, both)
    same = make(files, **{**both, "storageLocations": {"unknown": f"{base}/g"}})

    assert (other.status, "storageLocations.unknown differ" in other.json()["message"]) == (400, True)
    assert same["storageLocations"] == {"unknown": f"{base}/g"}
