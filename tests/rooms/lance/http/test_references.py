# SPDX-License-Identifier: Apache-2.0
"""Tags and branches over Lance REST, of tables with and without managed versions; and versions that they protect from
deletion.
"""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.interference import InterferencePoint, interfere
from tests.rooms.lance.http.wire import declare, failure_of, table

pytestmark = pytest.mark.slow

ROWS = pa.table({"id": [1, 2]})
AT = table("lance", "t")
KINDS = [{"managed_versioning": "true"}, {}]


@pytest.fixture(params=KINDS, ids=["managed", "by its files"])
def path(node: DriverNode, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a table of three versions, with and without managed versions."""
    at = str(tmp_path / "data" / "warehouse" / "lance" / "old")
    for mode in ("create", "append", "append"):
        lance.write_dataset(ROWS, at, mode=mode)
    node.done("POST", f"{AT}/register", {"location": at, "properties": request.param})
    return at


def versions(node: DriverNode, branch: str = "") -> list[int]:
    """Return the listed versions."""
    return [each["version"] for each in node.done("POST", f"{AT}/version/list?branch={branch}", {})["versions"]]


def test_tags_are_created_listed_moved_and_deleted(node: DriverNode, path: str) -> None:
    """A tag can be created, listed, moved and deleted, and Lance's own library reads it."""
    node.done("POST", f"{AT}/tags/create", {"tag": "v1", "version": 1})
    assert node.done("POST", f"{AT}/tags/version", {"tag": "v1"}) == {"version": 1}
    listed = node.done("POST", f"{AT}/tags/list", {})["tags"]
    assert listed["v1"]["version"] == 1
    assert listed["v1"]["manifestSize"] > 0
    assert lance.dataset(path).tags.get_version("v1") == 1
    remote = {"x-lancedb-database": "lance", "user-agent": "LanceDB-Python-Client/0.40.0"}
    assert set(node.ask("POST", f"{table('t')}/tags/list/", {}, **remote).json()) == {"v1"}

    node.done("POST", f"{AT}/tags/update", {"tag": "v1", "version": 2})
    assert node.done("POST", f"{AT}/describe", {"tag": "v1"})["version"] == 2
    assert failure_of(node.post(f"{AT}/tags/create", {"tag": "v1", "version": 1})) == (409, 9)
    assert failure_of(node.post(f"{AT}/tags/update", {"tag": "none", "version": 1})) == (404, 8)
    missing = node.post(f"{AT}/tags/version", {"tag": "none"}).json()
    assert (missing["error"], missing["detail"]) == ("none", "Tag does not exist: none")
    assert failure_of(node.post(f"{AT}/tags/create", {"tag": "x", "version": 9})) == (404, 11)
    assert failure_of(node.post(f"{AT}/tags/create", {"tag": "x", "version": 1, "branch": "none"})) == (404, 22)
    assert failure_of(node.post(f"{AT}/tags/create", {"tag": "../x", "version": 1})) == (400, 13)
    node.done("POST", f"{AT}/tags/delete", {"tag": "v1"})

    assert node.done("POST", f"{AT}/tags/list", {}) == {"tags": {}}
    assert failure_of(node.post(f"{AT}/tags/delete", {"tag": "v1"})) == (404, 8)
    assert failure_of(node.post(f"{AT}/tags/version", {"tag": "v1"})) == (404, 8)


def test_out_of_range_version_number_is_a_bad_request(node: DriverNode, path: str) -> None:
    """A version number beyond the library's range is a bad request, and the tag is unchanged."""
    node.done("POST", f"{AT}/tags/create", {"tag": "v1", "version": 1})

    for verb, tag, version in (("create", "x", 2**70), ("update", "v1", -1)):  # each crashes a worker process
        answer = node.post(f"{AT}/tags/{verb}", {"tag": tag, "version": version})
        assert failure_of(answer)[0] in (400, 404), answer.body
    assert node.done("POST", f"{AT}/tags/version", {"tag": "v1"}) == {"version": 1}


def test_name_with_zero_byte_is_a_bad_request(node: DriverNode, path: str) -> None:
    """A name with a zero byte, on which Lance's library fails, is refused as a bad request, and the next request
    succeeds.
    """
    assert failure_of(node.post(f"{AT}/describe", {"tag": "\x00"}))[0] in (400, 404)
    assert node.done("POST", f"{AT}/describe", {})["version"] == 3


def test_lancedb_client_gets_400_for_a_used_reference_name(node: DriverNode, path: str) -> None:
    """For LanceDB's remote client, which retries on 409, a tag or branch name in use is refused with 400."""
    t = table("lance", "t")
    tag, branch = {"tag": "twice", "version": 1}, {"name": "twice"}
    node.done("POST", f"{t}/tags/create", tag)
    node.done("POST", f"{t}/branches/create", branch)

    for action, body in (("tags/create", tag), ("branches/create", branch)):
        assert node.post(f"{t}/{action}", body).status == 409
        assert failure_of(node.ask("POST", f"{t}/{action}", body, user_agent="LanceDB-Python-Client/0.40.0")) == (
            400,
            13,
        )


def test_branches_are_created_versioned_and_deleted(node: DriverNode, path: str) -> None:
    """A branch is created at a version, has its own versions, and is deleted with its files."""
    node.done("POST", f"{AT}/branches/create", {"name": "dev", "from_version": 2})
    node.done("POST", f"{AT}/branches/create", {"name": "feat/x", "from_branch": "dev"})

    branches = node.done("POST", f"{AT}/branches/list", {})["branches"]
    assert {name: (each["parentVersion"], each.get("parentBranch")) for name, each in branches.items()} == {
        "dev": (2, None),
        "feat/x": (2, "dev"),
    }
    assert node.done("POST", f"{AT}/branches/list?limit=1", {})["page_token"]
    assert versions(node, "dev") == [2]
    assert node.done("POST", f"{AT}/describe", {"branch": "dev"})["version"] == 2
    assert failure_of(node.post(f"{AT}/branches/create", {"name": "dev"})) == (409, 23)
    missing = node.post(f"{AT}/branches/create", {"name": "new", "from_version": 9})
    assert failure_of(missing) == (404, 11)
    assert "9" in missing.json()["error"]
    assert failure_of(node.post(f"{AT}/branches/create", {"name": "new", "from_branch": "none"})) == (404, 22)
    for name in ("../x", "", "main", "a//b"):
        refused = node.post(f"{AT}/branches/create", {"name": name})
        assert failure_of(refused) == (400, 13)
    assert "'a//b' is not a name of a branch" in refused.json()["detail"]
    node.done("POST", f"{AT}/tags/create", {"tag": "d", "version": 2, "branch": "dev"})
    assert failure_of(node.post(f"{AT}/branches/delete", {"name": "dev"})) == (409, 19)

    node.done("POST", f"{AT}/tags/delete", {"tag": "d"})
    for name in ("feat/x", "dev"):
        node.done("POST", f"{AT}/branches/delete", {"name": name})
    assert node.done("POST", f"{AT}/branches/list", {}) == {"branches": {}}
    assert failure_of(node.post(f"{AT}/version/list?branch=dev", {})) == (404, 22)
    assert failure_of(node.post(f"{AT}/branches/delete", {"name": "dev"})) == (404, 22)
    node.done("POST", f"{AT}/branches/create", {"name": "dev"})
    assert versions(node, "dev") == [3]
    assert lance.dataset(path).branches.list()["dev"]["parent_version"] == 3


def commits_told(node: DriverNode) -> int:
    """Return the number of table commits in the metalake's change feed."""
    changes = node.done("GET", f"{OWN}/metalakes/lake/changes?after=oldest&limit=1000")["changes"]
    return sum(each["operation"] == "commit" for each in changes)


def test_old_versions_are_deleted(node: DriverNode, path: str) -> None:
    """Ranges of versions are deleted. If one is the newest or has a tag or branch, none is. A deletion writes one
    change.
    """
    node.done("POST", f"{AT}/tags/create", {"tag": "v1", "version": 1})
    node.done("POST", f"{AT}/branches/create", {"name": "dev", "from_version": 2})

    def delete_versions(*ranges: tuple[int, int]) -> object:
        body = {"ranges": [{"start_version": start, "end_version": end} for start, end in ranges]}
        answer = node.post(f"{AT}/version/delete", body)
        return answer.json()["deleted_count"] if answer.status == 200 else failure_of(answer)

    for span in ((0, -1), (3, 4), (1, 2), (2, 3)):
        assert delete_versions(span) == (409, 19)
    assert delete_versions((2, 1)) == (400, 13)
    assert delete_versions((-5, 1)) == (400, 13)
    assert versions(node) == [1, 2, 3]
    node.done("POST", f"{AT}/tags/delete", {"tag": "v1"})
    node.done("POST", f"{AT}/branches/delete", {"name": "dev"})

    before = commits_told(node)
    assert delete_versions((0, 3)) == 2
    assert commits_told(node) == before + 1
    assert delete_versions((0, 3)) == 0
    assert versions(node) == [3]
    assert [each["version"] for each in lance.dataset(path).versions()] == [3]
    assert failure_of(node.post(f"{AT}/version/delete", {"ranges": [], "branch": "none"})) == (404, 22)


@pytest.mark.parametrize("path", KINDS[:1], ids=["managed"], indirect=True)
def test_delete_privilege_is_checked_again_in_the_transaction(
    node: DriverNode, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The privilege to delete versions is checked again in the transaction. If only the privilege to read is left, no
    version is deleted.
    """
    assert path
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="lance")
    role = grant(node, "ana", "modify_table", kind="CATALOG", on="lance")

    async def lose() -> None:
        await node.answer("PUT", f"{API}/lake/permissions/users/ana/revoke", {"roleNames": [role]})

    with interfere(node, monkeypatch, step=InterferencePoint.SUBMIT, act=lose) as interference:
        refused = node.post(f"{AT}/version/delete", {"ranges": [{"start_version": 1, "end_version": 2}]}, user="ana")
    assert (interference.is_done, refused.status) == (True, 403), refused.body
    assert versions(node) == [1, 2, 3]


def test_branch_created_by_path_is_not_listed(node: DriverNode, tmp_path: Path) -> None:
    """A branch that was created by path, past a table with managed versions, is not listed. A branch of that name
    created over the server replaces it.
    """
    at = str(tmp_path / "data" / "warehouse" / "lance" / "old")
    lance.write_dataset(ROWS, at)
    node.done("POST", f"{AT}/register", {"location": at, "properties": KINDS[0]})
    rogue = lance.dataset(at).create_branch("dev")
    lance.write_dataset(ROWS, rogue, mode="append")
    rogue.tags.create("odd", ("dev", 2))

    assert node.done("POST", f"{AT}/branches/list", {}) == {"branches": {}}
    assert node.done("POST", f"{AT}/tags/list", {}) == {"tags": {}}
    assert failure_of(node.post(f"{AT}/describe", {"tag": "odd"})) == (404, 8)
    lance.dataset(at).tags.delete("odd")
    node.done("POST", f"{AT}/branches/create", {"name": "dev"})

    assert versions(node, "dev") == [1]


def test_table_without_data_has_no_tags_or_branches(node: DriverNode) -> None:
    """A declared table without data has no tags or branches, and none can be created."""
    declare(node, "lance", "t")

    assert node.done("POST", f"{AT}/tags/list", {}) == {"tags": {}}
    assert node.done("POST", f"{AT}/branches/list", {}) == {"branches": {}}
    assert node.post(f"{AT}/tags/create", {"tag": "x", "version": 1}).status == 404
    assert node.post(f"{AT}/branches/create", {"name": "x"}).status == 404
