# SPDX-License-Identifier: Apache-2.0
"""A store of a release without the register of locations: violations of its rules are reported, give no file access,
refuse no requests, and can be repaired.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from limnos.app.node_builder import DATABASE_FILE, database_of
from limnos.cli.main import main
from limnos.config.settings import Settings
from limnos.services.storage.location_reconciliation import locations_refresh
from limnos.store.backends.migrate import migrate
from tests.http.driver import API, DriverNode
from tests.http.iceberg.wire import SCHEMA
from tests.store.location_upgrade_story import CATALOGS, FOLDER, LAKE, restored, serving, settings_of

FILES = f"{CATALOGS}/files/schemas/s/filesets"
COPY, NOBODY, KEEPS = (
    "copy it to another location, then drop it",
    "its files are not served to clients",
    "its objects keep their files",
)
TOLD = (
    (
        "Data path lake.sales.s.writes_into (id 1009) overlaps Table lake.sales.s.orders (id 1008)",
        "/sales/orders/data",
        "/sales/orders",
        NOBODY,
        "copy the table to another location, without this data path, then drop it",
    ),
    (
        "Table lake.rooted.s.old (id 1012) overlaps Warehouse lake.rooted (id 1010)",
        "/rooted/old",
        "/rooted/old",
        NOBODY,
        COPY,
    ),
    (
        "Allowed location lake.files (id 1013) overlaps Warehouse pond.ice (id 1020)",
        "",
        "/both",
        KEEPS,
        "narrow the catalog's allowed-locations, or those of the other metalake's catalog",
    ),
    (
        "External fileset lake.files.s.over (id 1015) overlaps Table lake.sales.s.orders (id 1008)",
        "/sales/orders",
        "/sales/orders",
        NOBODY,
        "drop the fileset, and create it again at another location",
    ),
    (
        "Lance directory lake.shown (id 1017) overlaps Warehouse lake.sales (id 1006)",
        "/sales",
        "/sales",
        "its objects are not served",
        "give the catalog another lance-directory, or drop it",
    ),
    (
        "Warehouse pond.ice (id 1020) overlaps Warehouse lake.both (id 1022)",
        "/both",
        "/both",
        KEEPS,
        "narrow the catalog's warehouse, or that of the other metalake's catalog",
    ),
    (
        "Warehouse lake.both (id 1022) overlaps Warehouse pond.ice (id 1020)",
        "/both",
        "/both",
        KEEPS,
        "narrow the catalog's warehouse, or that of the other metalake's catalog",
    ),
)
"""Violations in the report: the problem, its location and the other one's below the lake, the consequence, and the
remedy.
"""


@pytest.fixture
def lake() -> Iterator[str]:
    """A directory whose path has the same length as the one in the store."""
    place = Path(LAKE)
    directory = tempfile.mkdtemp(prefix=place.name.rstrip("X"), dir=place.parent)
    Path(directory, "data").mkdir(mode=0o700)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def settings(request: pytest.FixtureRequest, lake: str) -> Settings:
    """The settings of a server over the older store, brought to the newest schema."""
    kind = str(request.param)
    text = restored((FOLDER / f"{kind}.sql").read_text(encoding="utf-8"), lake=lake)
    if kind == "sqlite":
        with closing(sqlite3.connect(Path(lake, "data", DATABASE_FILE))) as connection:
            connection.executescript(text)
        migrate(f"{lake}/data/{DATABASE_FILE}")
        return settings_of(lake, None)
    address = str(request.getfixturevalue("postgres_server").empty_database())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(text.encode())
    migrate(address)
    return settings_of(lake, address)


def check(settings: Settings, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    """Return the output of `limnos server check`. It succeeds, because no finding prevents a start."""
    capsys.readouterr()
    address = database_of(settings)
    words = ["--database", address] if "://" in address else []
    words += [word for root in settings.storage.allowed_roots for word in ("--allow-root", root)]
    code = main(
        ["server", "check", "--listen", "127.0.0.1:0", "--data", settings.server.data, *words, "--output", "json"]
    )
    assert code == 0
    findings: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return [each for each in findings if "authentication" not in str(each)]  # an earlier store takes names


def shift_of(settings: Settings) -> int:
    """Return how much lower the ids of the PostgreSQL store are than those of the SQLite store, because both assigned
    the first ids in another order.
    """
    return 1 if "://" in database_of(settings) else 0


def expected(lake: str, shift: int) -> list[dict[str, object]]:
    """Return the expected report for the stored state."""
    return [
        {
            "problem": re.sub(r"(?<=id )\d+", lambda match: str(int(match[0]) - shift), problem),
            "why": (
                f"file://{lake}{at} and file://{lake}{other} overlap since an earlier release, which did not refuse"
                f" this: {effect}"
            ),
            "next": mend,
            "stops": False,
        }
        for problem, at, other, effect, mend in TOLD
    ]


def statuses(node: DriverNode) -> dict[str, int]:
    """Return the statuses of requests for files of objects that violate a rule, and of others."""
    tables = {
        each: f"/iceberg/v1/lake.{each.replace('.', '/namespaces/s/tables/')}"
        for each in ("sales.orders", "sales.writes_into", "rooted.old")
    }
    response_statuses = {
        f"{how} {each}": node.get(path, x_iceberg_access_delegation=how).status
        for each, path in tables.items()
        for how in ("vended-credentials", "remote-signing")
    }
    for name in ("over", "apart"):
        response_statuses[f"list {name}"] = node.get(f"{FILES}/{name}/files?sub_path=/").status
        response_statuses[f"open {name}"] = node.get(f"{API}/lake/objects/fileset/files.s.{name}/credentials").status
    return response_statuses | {"show": node.get("/lance/v1/namespace/shown/table/list").status}


def creates(node: DriverNode, lake: str, name: str) -> list[int]:
    """Return the answers to creates beside, above and below objects that violate a rule."""
    places = ("lake.sales", "lake.rooted", "lake.both", "pond.ice")
    body: dict[str, object] = {"name": name, "schema": SCHEMA}
    table_statuses = [node.post(f"/iceberg/v1/{each}/namespaces/s/tables", body).status for each in places]
    fileset = {"name": name, "type": "EXTERNAL", "storageLocation": f"file://{lake}/free/{name}"}
    return [*table_statuses, node.post(FILES, fileset).status]


def mend(node: DriverNode, lake: str) -> None:
    """Follow the report: drop the objects that are marked (nobody needs a copy here), and give the catalogs separate
    roots.
    """
    for path in ("lake.sales/namespaces/s/tables/writes_into", "lake.rooted/namespaces/s/tables/old"):
        assert node.delete(f"/iceberg/v1/{path}").status == 204
    for name in ("theirs", "new"):
        assert node.delete(f"/iceberg/v1/pond.ice/namespaces/s/tables/{name}?purgeRequested=true").status == 204
    assert node.delete(f"{FILES}/over").status == 200
    for metalake, catalog, key, value in (
        ("lake", "shown", "lance-directory", "shown"),
        ("lake", "files", "allowed-locations", "free"),
        ("pond", "ice", "warehouse", "pond"),
    ):
        update = {"@type": "setProperty", "property": key, "value": f"file://{lake}/{value}"}
        node.done("PUT", f"{API}/{metalake}/catalogs/{catalog}", {"updates": [update]})
    while node.runner.run(node.built.upkeep.run_one()):
        pass


@pytest.mark.room("lance")
def test_conflicting_locations_are_reported_until_repaired(
    settings: Settings, lake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each start and `server check` report both locations and the repair. No create fails because of them. After the
    repair nothing is reported.
    """
    (early,) = check(settings, capsys)
    with capture_logs() as logs, serving(settings) as node:
        opened, creation_statuses = statuses(node), creates(node, lake, "new")
    findings = check(settings, capsys)
    with serving(settings) as node:
        mend(node, lake)
    mended = check(settings, capsys)
    with capture_logs() as after, serving(settings) as node:
        node.runner.run(locations_refresh(node.built.services))
        again = creates(node, lake, "newer")
        marked = node.built.services.defaults.location_conflicts.ids

    closed = {each for each, status in opened.items() if status == 403}
    assert early["problem"] == "The storage locations of this store were not checked"
    assert [each["location"] for each in logs if each["event"] == "a location violates a rule of locations"] == [
        f"file://{lake}{at}" for _, at, *_ in TOLD
    ]
    assert findings == expected(lake, shift_of(settings))
    assert closed == {
        *(
            f"{how} {each}"
            for how in ("vended-credentials", "remote-signing")
            for each in ("sales.writes_into", "rooted.old")
        ),
        "list over",
        "open over",
        "show",
    }
    assert {status for each, status in opened.items() if each not in closed} == {200}
    assert (creation_statuses, again) == ([200] * 5, [200] * 5)
    assert (mended, [each for each in after if "place" in str(each["event"])]) == ([], [])
    assert marked == {
        each - shift_of(settings) for each in (1009, 1012, 1015)
    }  # these are in the trash and can be restored


def test_store_at_a_path_of_another_length_is_refused(tmp_path: Path) -> None:
    """The store is refused at a path of another length, because that would make records unreadable."""
    with pytest.raises(ValueError, match="length"):
        restored("", lake=str(tmp_path / ("x" * 40)))
