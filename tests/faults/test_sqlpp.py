# SPDX-License-Identifier: Apache-2.0
"""Kill -9 at each boundary of each kind of SQL++ definition: afterwards the metadata has the state before or after it,
and all protocols agree.

A statement first runs on a second dataverse that was prepared in the same way: its result there is the expected state.
By default a sample runs; `LIMNOS_TEST_FAULTS=all` runs all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from limnos.store.faults import POINTS
from tests.faults.rig import FULL, Rig
from tests.faults.store_integrity import complaints
from tests.nodes.wire import GRAVITINO, namespace_path

SERVICE = "/query/service"
RECORDS = ("Dataverse", "Datatype", "Dataset", "Index", "Function", "Synonym")
CHANGING = ("Timestamp", "LastRefreshTime", "DatasetId", "GroupName")
"""Fields in which two equally defined datasets differ."""
MADE = """create dataverse `{0}`; create dataverse `{0}`.low; create type `{0}`.t as {{ id: bigint, word: string? }}; create type `{0}`.unused as {{ n: bigint }};
create dataset `{0}`.d(t) primary key id; create index i on `{0}`.d(word); create dataset `{0}`.spare(t) primary key id; create view `{0}`.v as select value 1;
create function `{0}`.f(a) {{ a + 1 }}; create synonym `{0}`.s for `{0}`.d;
create external dataset `{0}`.e(t) using localfs (("path"="localhost://{{files}}"), ("format"="json"))"""
STATEMENTS = {
    "create-dataverse": ("create dataverse `{0}`.a", "create dataverse `{0}`.b.c"),
    "mark-dataverse": ("create dataverse `{0}`.a", "create dataverse `{0}`"),
    "create-type": (MADE, "create type `{0}`.other as closed {{ id: bigint, word: string? }}"),
    "create-dataset": (MADE, "create dataset `{0}`.other(t) primary key id"),
    "create-external": (
        MADE,
        'create external dataset `{0}`.other(t) using localfs (("path"="localhost://{{files}}"), ("format"="json"))',
    ),
    "create-index": (MADE, "create index other on `{0}`.d(word)"),
    "create-view": (MADE, "create view `{0}`.other as select value 2"),
    "replace-view": (MADE, "create or replace view `{0}`.v as select value 2"),
    "create-function": (MADE, "create function `{0}`.other() {{ 2 }}"),
    "replace-function": (MADE, "create or replace function `{0}`.f(a) {{ a + 2 }}"),
    "create-synonym": (MADE, "create synonym `{0}`.other for `{0}`.d"),
    "drop-type": (MADE, "drop type `{0}`.unused"),
    "drop-dataset": (MADE, "drop dataset `{0}`.spare"),
    "drop-external": (MADE, "drop dataset `{0}`.e"),
    "drop-index": (MADE, "drop index `{0}`.d.i"),
    "drop-view": (MADE, "drop view `{0}`.v"),
    "drop-function": (MADE, "drop function `{0}`.f@1"),
    "drop-synonym": (MADE, "drop synonym `{0}`.s"),
    "unmark-dataverse": (MADE, "drop dataverse `{0}`"),
    "drop-dataverse": (MADE, "drop dataverse `{0}`.low"),
}
"""The prepared state, and the statement. `{0}` stands for an unused name."""
WITH_FILE = ("create-dataset", "create-view", "replace-view")
"""Statements that write a metadata file before their transaction."""
MATRIX = [(name, point) for name in STATEMENTS for point in POINTS if point != "file-written" or name in WITH_FILE]
SAMPLE = MATRIX if FULL else MATRIX[:: len(MATRIX) // 3]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node that may read files of a directory."""
    base = tmp_path_factory.mktemp(request.param)
    database = request.getfixturevalue("cluster").database() if request.param == "postgresql" else None
    env = {"LIMNOS__SQLPP__FILE_ROOTS": str(base)}
    with Rig(base, database, env=env) as running:
        yield running


def run_statement(rig: Rig, text: str) -> tuple[int, list[object]]:
    """Send a statement. Returns status and results."""
    answer = rig.admin.ask("POST", SERVICE, {"statement": text})
    results = answer.body.get("results", [])
    assert isinstance(results, list)
    return answer.status, results


def spelled(rig: Rig, text: str, tag: str) -> str:
    """Return a statement about the dataverse of a name."""
    return text.format(tag).replace("{files}", str(rig.directory))


def picture(rig: Rig, tag: str) -> str:
    """Return the metadata of a dataverse and those below it, and the lists of Iceberg and Gravitino, as text with a
    placeholder for the name.
    """
    metadata: dict[str, object] = {}
    for record in RECORDS:
        status, results = run_statement(rig, f"select value x from Metadata.`{record}` x")
        assert status == 200
        metadata[record] = sorted(
            json.dumps(plain(each), sort_keys=True) for each in results if f'"{tag}' in json.dumps(each)
        )
    for levels in ((tag,), (tag, "low"), (tag, "a"), (tag, "b"), (tag, "b", "c")):
        for kind in ("tables", "views"):
            answer = rig.admin.ask("GET", f"{namespace_path(*levels)}/{kind}")
            assert answer.status in (200, 404)
            metadata[f"{kind} of {levels[1:]}"] = answer.body.get("identifiers")
        answer = rig.admin.ask("GET", f"{GRAVITINO}/catalogs/main/schemas/{':'.join(levels)}/tables")
        metadata[f"Gravitino's of {levels[1:]}"] = answer.body.get("identifiers")
    return json.dumps(metadata, indent=1, sort_keys=True).replace(tag, "$")


def plain(value: object) -> object:
    """Return a record without the fields that differ between two equal definitions."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if name not in CHANGING}
    return [plain(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name,point", SAMPLE)
def test_killed_definition_is_whole_or_absent(rig: Rig, name: str, point: str) -> None:
    """A definition in which the node is killed is complete if the kill is after the commit, and absent if it is before.
    It can be repeated.
    """
    before, text = STATEMENTS[name]
    beside, tag = rig.tag(), rig.tag()
    for each in (beside, tag):
        assert run_statement(rig, spelled(rig, before, each))[0] == 200
    initial_metadata = picture(rig, tag)
    assert initial_metadata == picture(rig, beside)
    assert run_statement(rig, spelled(rig, text, beside))[0] == 200
    expected_metadata = picture(rig, beside)
    rig.arm(point)

    answer = rig.try_to("POST", SERVICE, {"statement": spelled(rig, text, tag)})

    rig.node.wait_killed()
    assert answer is None, f"a killed node answered: {answer}"
    assert complaints(rig.database) == []
    rig.start()
    assert expected_metadata != initial_metadata
    assert picture(rig, tag) == (expected_metadata if point == "after-commit" else initial_metadata)
    again, _ = run_statement(rig, spelled(rig, text, tag))
    assert again in ((200, 400) if point == "after-commit" else (200,))
    assert picture(rig, tag) == expected_metadata
    assert complaints(rig.database) == []
