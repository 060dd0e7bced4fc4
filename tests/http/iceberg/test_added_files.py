# SPDX-License-Identifier: Apache-2.0
"""With the setting on, the server checks files that a commit adds before it commits, over every protocol and within
limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from limnos.services.iceberg.added_files import LOOKED_AT
from tests.http.driver import DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.planning import Json, WrittenTable
from tests.http.iceberg.test_plans import steer
from tests.http.iceberg.wire import ROOT, commit, error_of, make_table, metadata_of, rows_of, set_properties
from tests.iceberg_manifests import EXISTING, data_file, entry, manifest_list


class Writer(WrittenTable):
    """A writer of a table's files, which may also report files that it did not write."""

    def __init__(self, node: DriverNode, name: str = "t", **more: object) -> None:
        super().__init__(node, name, **more)
        steer(node, check_added_files=True)

    def file(self, name: str, *, is_there: bool = True) -> str:
        """Write a data file."""
        location = f"{self.location}/data/{name}"
        if is_there:
            wire.local(location).parent.mkdir(parents=True, exist_ok=True)
            wire.local(location).write_bytes(b"PAR1")
        return location

    def added(self, *locations: str, name: str = "m.avro", **more: object) -> Json:
        """Return a manifest that adds these files."""
        return self.manifest(name, [entry(data_file(each)) for each in locations], **more)

    def updates(self, *manifests: Json) -> list[object]:
        """Return the updates that add a snapshot with these manifests, listed in a new manifest list."""
        number = self.snapshots + 1
        addition = wire.snapshot(
            number,
            manifest_list=self.write(f"l{number}.avro", manifest_list(manifests)),
            parent=self.snapshots or None,
        )
        addition["snapshot"] = {**addition["snapshot"], "sequence-number": number}  # type: ignore[dict-item]
        return [addition, wire.point(number)]

    def send(self, *manifests: Json, more: tuple[object, ...] = ()) -> DriverAnswer:
        """Commit a snapshot with these manifests."""
        return commit(self.node, "a", self.name, updates=[*more, *self.updates(*manifests)])


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Writer]:
    """A table on a node that checks added files. Over SQLite only: the check does not depend on the database."""
    with wire.node_over(tmp_path) as node:
        yield Writer(node)


@contextmanager
def nothing_committed(node: DriverNode) -> Iterator[None]:
    """Check that no row changes and no metadata file is left."""
    rows, files = rows_of(node), metadata_files(node)
    yield
    assert (rows_of(node), metadata_files(node)) == (rows, files)


def metadata_files(node: DriverNode) -> list[str]:
    """Return the metadata files of all tables."""
    return [each for each in wire.files_of(node) if each.endswith(".metadata.json")]


def refused(answer: DriverAnswer, *words: str) -> None:
    """Check that a commit is refused in Iceberg's form, with the missing file."""
    assert error_of(answer)[:2] == (400, "IllegalArgumentException"), answer.body
    for word in words:
        assert word in error_of(answer)[2], error_of(answer)[2]


def test_commit_of_existing_files_succeeds(table: Writer) -> None:
    """Commits of existing files succeed; files that a new manifest takes over from older ones are not checked again."""
    taken_over = entry(data_file(f"{table.location}/data/gone.parquet"), status=EXISTING, snapshot=1, sequence=1)
    new = entry(data_file(table.file("b.parquet")))

    assert table.send(table.added(table.file("a.parquet"))).status == 200
    table.snapshots = 1
    assert table.send(table.manifest("m2.avro", [taken_over, new])).status == 200


def test_manifests_of_earlier_snapshots_are_not_checked(table: Writer) -> None:
    """Only files added by the commit are checked: an older manifest may be missing or name missing files."""
    first = table.added(table.file("a.parquet"))
    assert table.send(first).status == 200
    wire.local(first["manifest_path"]).unlink()
    table.snapshots = 1

    assert table.send(first, table.added(table.file("b.parquet"), name="m2.avro")).status == 200


def test_commit_with_a_missing_file_is_refused(table: Writer) -> None:
    """A missing data file, manifest or manifest list refuses the commit, and nothing is changed."""
    missing_file, no_manifest = (
        table.file("gone.parquet", is_there=False),
        table.added(table.file("a.parquet"), name="m2.avro"),
    )
    wire.local(no_manifest["manifest_path"]).unlink()
    no_list = wire.snapshot(7, manifest_list=f"{table.location}/metadata/none.avro")

    with nothing_committed(table.node):
        refused(
            table.send(table.added(table.file("a.parquet"), missing_file)),
            "Snapshot 100",
            missing_file,
            "check_added_files",
        )
        refused(table.send(no_manifest), str(no_manifest["manifest_path"]))
        refused(commit(table.node, "a", "t", updates=[no_list]), "none.avro")


def test_commit_with_an_unreadable_manifest_is_refused(table: Writer) -> None:
    """A manifest that cannot be read refuses the commit."""
    broken = table.added(table.file("a.parquet"))
    wire.local(broken["manifest_path"]).write_bytes(b"nothing")

    refused(table.send(broken), "cannot be read")


def test_refusal_does_not_reveal_files_of_other_tables(table: Writer) -> None:
    """A file of another table is refused alike whether it exists or not, also behind a link."""
    other = str(make_table(table.node, "a", "u")["metadata"]["location"])  # type: ignore[index]
    existing_file, missing_file = f"{other}/data/there.parquet", f"{other}/data/gone.parquet"
    wire.local(existing_file).parent.mkdir(parents=True, exist_ok=True)
    wire.local(existing_file).write_bytes(b"PAR1")
    wire.local(f"{table.location}/data").mkdir(parents=True, exist_ok=True)
    wire.local(f"{table.location}/data/link").symlink_to(wire.local(other))

    messages = [error_of(table.send(table.added(each)))[2].replace(each, "") for each in (existing_file, missing_file)]
    assert messages[0] == messages[1]
    refused(table.send(table.added(existing_file)), "is outside")
    refused(table.send(table.added(f"{table.location}/data/link/data/there.parquet")), "is outside")


def test_files_at_the_data_path_are_checked(table: Writer) -> None:
    """Files at the table's data path are checked, and so are files at a data path that the same commit sets."""
    first, second = (f"{table.location.rpartition('/')[0]}/{name}" for name in ("cold", "colder"))
    assert commit(table.node, "a", "t", updates=[set_properties(**{"write.data.path": first})]).status == 200
    for place in (first, second):
        wire.local(place).mkdir()
        wire.local(f"{place}/a.parquet").write_bytes(b"PAR1")
    brings = (set_properties(**{"write.data.path": second}),)

    refused(table.send(table.added(f"{first}/gone.parquet")), "which does not exist")
    assert table.send(table.added(f"{first}/a.parquet")).status == 200
    table.snapshots = 1
    refused(table.send(table.added(f"{second}/gone.parquet", name="m2.avro"), more=brings), "which does not exist")
    assert table.send(table.added(f"{second}/a.parquet", name="m3.avro"), more=brings).status == 200


def test_data_path_of_another_table_is_refused(table: Writer) -> None:
    """A commit that sets another table's directory as data path is refused with this reason, whatever files it adds."""
    other = str(make_table(table.node, "a", "u")["metadata"]["location"])  # type: ignore[index]
    brings = (set_properties(**{"write.data.path": f"{other}/data"}),)

    refused(table.send(table.added(f"{other}/data/x.parquet"), more=brings), "cannot share files")


def test_large_and_staged_commits_with_missing_files_are_refused(table: Writer) -> None:
    """Large commits, transactions, staged creates and creates in transactions are refused like small commits."""
    node, missing_file = table.node, table.file("gone.parquet", is_there=False)
    updates = table.updates(table.added(missing_file))
    change = {"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": updates}
    new = {"identifier": {"namespace": ["a"], "name": "n"}, "requirements": [{"type": "assert-create"}]}
    place = f"{table.location.rpartition('/')[0]}/n"
    changes = [*wire.creation(place), *_moved(table, place)]

    with nothing_committed(node):
        refused(commit(node, "a", "t", updates=[set_properties(k="x" * 70_000), *updates]), missing_file)
        refused(node.post(f"{ROOT}/transactions/commit", {"table-changes": [change]}), missing_file, "a.t")
        refused(node.post(wire.table_path("a", "n"), {**new, "updates": changes}), f"{place}/data/gone.parquet")
        refused(node.post(f"{ROOT}/transactions/commit", {"table-changes": [{**new, "updates": changes}]}), place)


def _moved(table: Writer, place: str) -> list[object]:
    """Return updates that add a snapshot to a table with a given location; its manifests exist, its data file does
    not.
    """
    writer = object.__new__(Writer)
    writer.location, writer.snapshots, writer.node = place, 0, table.node
    return writer.updates(writer.added(f"{place}/data/gone.parquet"))


def test_commit_beyond_the_limits_is_accepted_without_check(table: Writer) -> None:
    """Beyond the limits of files and time, a commit is accepted without the check, with a log line and a metric. Within
    the limits it is refused.
    """
    existing_file, missing_file = table.file("a.parquet"), table.file("gone.parquet", is_there=False)
    steer(table.node, check_added_files_max=1)
    before = LOOKED_AT["not looked for",]

    with capture_logs() as logs:
        refused(table.send(table.added(missing_file, existing_file)), missing_file)
        assert table.send(table.added(existing_file, missing_file, name="m2.avro")).status == 200
    assert LOOKED_AT["not looked for",] == before + 1
    assert "check_added_files_max" in next(each["reason"] for each in logs if "not checked" in each["event"])
    table.snapshots = 1
    steer(table.node, check_added_files_max=100, check_added_files_s=0.0)
    assert table.send(table.added(missing_file, name="m3.avro")).status == 200
    assert LOOKED_AT["not looked for",] == before + 2


def test_files_are_not_checked_with_the_setting_off(table: Writer) -> None:
    """With the setting off, files are not checked."""
    steer(table.node, check_added_files=False)

    assert commit(table.node, "a", "t", updates=[wire.snapshot(1)]).status == 200
    assert len(metadata_of(table.node, "a", "t")["snapshots"]) == 1


def test_reader_is_refused_before_files_are_checked(table: Writer) -> None:
    """A reader is refused before any file is checked."""
    grant(table.node, "rita", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    updates = table.updates(table.added(table.file("gone.parquet", is_there=False)))

    assert error_of(commit(table.node, "a", "t", updates=updates, user="rita"))[0] == 403
