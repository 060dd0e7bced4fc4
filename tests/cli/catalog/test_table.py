# SPDX-License-Identifier: Apache-2.0
"""`table check`: problems of a table's files, request by request; the exit code is 1 if there are any."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

CHECK = "/api/limnos/v1/metalakes/lake/catalogs/main/tables/check?table=raw.trips&snapshots="
GONE = {
    "kind": "file",
    "problem": "missing",
    "file": "s3://b/t/data/1.parquet",
    "snapshot_id": 7,
    "size_told": 5,
    "size_found": None,
    "told": "restore it",
}
OUTSIDE = {**GONE, "problem": "outside", "told": "check it with the storage's own tools"}


def test_check_joins_pages_and_exits_with_1_for_missing_file(fake: FakeServer, limnos: Run) -> None:
    """`table check` requests page after page and joins the findings. If a file is missing, it exits with code 1, and
    standard error has the remedy.
    """
    fake.on("GET", f"{CHECK}current", {"files": 1000, "findings": [], "after": "5.7.1.0"})
    fake.on("GET", f"{CHECK}current&after=5.7.1.0", {"files": 20, "findings": [GONE], "after": None})

    done = limnos("table", "check", "main.raw.trips")

    assert (done.code, done.result) == (1, [GONE])
    assert "file missing: restore it" in done.err


def test_check_counts_files_and_tolerates_files_outside(fake: FakeServer, run: Run) -> None:
    """The output counts the checked files. Files outside of the locations that the server reads are not a failure."""
    fake.on("GET", f"{CHECK}all", {"files": 12, "findings": [], "after": None})
    done = run("table", "check", "main.raw.trips", "--all", "--uri", fake.uri, "--output", "table")
    assert (done.code, "12 files were checked: nothing is missing" in done.out + done.err) == (0, True)

    fake.on("GET", f"{CHECK}current", {"files": 12, "findings": [OUTSIDE], "after": None})
    assert run("table", "check", "main.raw.trips", "--uri", fake.uri, "--output", "table").code == 0


def test_mend_prints_changed_or_unchanged(fake: FakeServer, run: Run) -> None:
    """`table mend` sends one commit, and compares the metadata files before and after it."""
    tables = "/iceberg/v1/lake.main/namespaces/raw/tables"
    before = {"metadata-location": "s3://b/1.json", "metadata": {}}
    for name in ("trips", "stops"):
        fake.on("GET", f"{tables}/{name}?snapshots=refs", before)
    fake.on("POST", f"{tables}/trips", {**before, "metadata-location": "s3://b/2.json"})
    fake.on("POST", f"{tables}/stops", before)

    mended = run("table", "mend", "main.raw.trips", "--uri", fake.uri)
    same = run("table", "mend", "main.raw.stops", "--uri", fake.uri)

    assert (mended.code, mended.out.strip()) == (0, "mended main.raw.trips")
    assert (same.code, same.out.strip()) == (0, "nothing to mend in main.raw.stops")


def test_mend_prints_the_remedy(fake: FakeServer, run: Run) -> None:
    """A refusal of the server is the command's error."""
    url = "/iceberg/v1/lake.main/namespaces/raw/tables/trips"
    fake.on("GET", f"{url}?snapshots=refs", {"metadata-location": "s3://b/1.json", "metadata": {}})
    message = "The table cannot be mended without losing something: x. To correct it, remove schema 1"
    fake.on("POST", url, {"error": {"message": message, "type": "IllegalArgumentException", "code": 400}}, status=400)

    refused = run("table", "mend", "main.raw.trips", "--uri", fake.uri)

    assert (refused.code, "remove schema 1" in refused.err) == (1, True)
