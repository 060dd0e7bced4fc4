# SPDX-License-Identifier: Apache-2.0
"""A Lance table read from its own files, and files outside it that are not read."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from limnos.model.errors import InvalidTable, LimnosError, NotFound
from limnos.rooms.lance.sources.bodies import BodyPieces
from limnos.rooms.lance.sources.mutations import restore
from limnos.rooms.lance.sources.opening import canonical_location
from limnos.rooms.lance.sources.previewing import head
from limnos.rooms.lance.sources.questions import Count, Describe, Head, Restore, Write
from limnos.rooms.lance.sources.reading import count, describe
from limnos.rooms.lance.sources.writing import write
from limnos.sources.wire import COMPLETE, MORE


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Create another owner's table outside of every root."""
    place = tmp_path / "elsewhere"
    lance.write_dataset(pa.table({"theirs": [1]}), str(place))
    return place


@pytest.mark.parametrize("whole", [True, False])
def test_link_to_another_tables_manifests_is_refused(tmp_path: Path, elsewhere: Path, whole: bool) -> None:
    """A table whose manifests are links to another table's is refused, whether the directory or each file is a link."""
    own = tmp_path / "own"
    own.mkdir()
    if whole:
        (own / "_versions").symlink_to(elsewhere / "_versions")
    else:
        (own / "_versions").mkdir()
        for manifest in (elsewhere / "_versions").iterdir():
            (own / "_versions" / manifest.name).symlink_to(manifest)

    with pytest.raises(InvalidTable, match="a link to a file outside of it"):
        describe(Describe(location=f"file://{own}", options={}))


def test_links_within_a_table_are_followed(tmp_path: Path, elsewhere: Path) -> None:
    """The path of a table may contain a link, and so may links within the table."""
    (manifest,) = (elsewhere / "_versions").glob("*.manifest")
    manifest.rename(elsewhere / "kept")
    manifest.symlink_to(elsewhere / "kept")
    (tmp_path / "way").symlink_to(elsewhere)

    description = describe(Describe(location=f"file://{tmp_path}/way", options={}))

    assert description is not None
    assert description.version == 1


@pytest.fixture
def own(tmp_path: Path, elsewhere: Path) -> str:
    """A table of three versions with a tag and a branch; its first manifest was replaced by one that refers to another
    table's files.
    """
    place = tmp_path / "own"
    for _ in range(3):
        dataset = lance.write_dataset(pa.table({"id": [1]}), str(place), mode="append")
    dataset.tags.create("old", 1)
    dataset.create_branch("dev")
    lance.dataset(str(elsewhere)).shallow_clone(str(tmp_path / "clone"), 1)
    (manifest,) = (tmp_path / "clone" / "_versions").glob("*.manifest")
    manifest.replace(place / "_versions" / manifest.name)
    return f"file://{place}"


@pytest.mark.parametrize("state", [{"version": 1}, {"tag": "old"}])
def test_version_with_files_of_another_table_is_refused(own: str, state: dict[str, int | str]) -> None:
    """A version or tag whose files are in another table is refused: its rows are not counted, its columns not shown,
    and it is not restored.
    """
    for question, answer in ((Count, count), (Describe, describe), (Restore, restore)):
        with pytest.raises(InvalidTable, match="files in other places"):
            answer(question(location=own, options={}, **state))

    assert count(Count(location=own, options={})) == 3
    assert lance.dataset(own).version == 3


def test_branch_that_refers_to_another_table_is_refused(own: str, tmp_path: Path) -> None:
    """The files of a branch are those of the table itself; a branch whose manifest refers elsewhere is refused."""
    assert count(Count(location=own, options={}, branch="dev")) == 3
    versions = tmp_path / "own" / "tree" / "dev" / "_versions"
    (manifest,) = versions.glob("*.manifest")
    (laid,) = (each for each in (tmp_path / "own" / "_versions").iterdir() if each.name == f"{2**64 - 2:020d}.manifest")
    laid.replace(manifest)

    with pytest.raises(InvalidTable):
        count(Count(location=own, options={}, branch="dev"))


@pytest.mark.parametrize(
    "spelling",
    [
        "{other}",
        "file://{other}",
        "FILE://{other}",
        "file-object-store://{other}",
        "{own}/../elsewhere",
        "file://{own}/%2e%2e/elsewhere",
        "file://{own}/.%2E/elsewhere",
        "file://{own}/..%2felsewhere",
        "file://{own}/%252e%252e/elsewhere",
        "file://{own}/..\\elsewhere",
        "file://{own}/.\t./elsewhere",
        "s3://bucket{own}",
    ],
)
def test_base_path_outside_of_the_table_is_refused_in_each_spelling(
    tmp_path: Path, elsewhere: Path, spelling: str
) -> None:
    """A version whose base path leads to another table is refused, also where Lance decodes the path as a URL."""
    place = tmp_path / "own"
    dataset = lance.write_dataset(pa.table({"theirs": [7]}), str(place))
    dataset.add_bases([lance.DatasetBasePath(spelling.format(own=place, other=elsewhere), "x", True, 7)])
    (fragment,) = lance.dataset(str(elsewhere)).get_fragments()
    entry = fragment.metadata.to_json()
    entry["files"][0]["base_id"] = 7
    foreign = lance.FragmentMetadata.from_json(json.dumps(entry))
    lance.LanceDataset.commit(str(place), lance.LanceOperation.Overwrite(dataset.schema, [foreign]), read_version=2)

    for question, answer in ((Count, count), (Describe, describe)):
        with pytest.raises(InvalidTable, match="files in other places"):
            answer(question(location=f"file://{place}", options={}))


@pytest.mark.parametrize(
    "path", ["../../elsewhere/data/{name}", "%2e%2e/%2e%2e/elsewhere/data/{name}", "{other}/{name}"]
)
def test_data_file_path_does_not_lead_out_of_the_table(tmp_path: Path, elsewhere: Path, path: str) -> None:
    """Lance takes a data file's path as one name below the directory of data files, so it leads nowhere else."""
    place = tmp_path / "own"
    dataset = lance.write_dataset(pa.table({"theirs": [7]}), str(place))
    (fragment,) = lance.dataset(str(elsewhere)).get_fragments()
    entry = fragment.metadata.to_json()
    name = entry["files"][0]["path"]
    entry["files"][0]["path"] = path.format(name=name, other=f"{elsewhere}/data")
    foreign = lance.FragmentMetadata.from_json(json.dumps(entry))
    lance.LanceDataset.commit(str(place), lance.LanceOperation.Overwrite(dataset.schema, [foreign]), read_version=1)

    with pytest.raises(LimnosError):
        head(Head(location=f"file://{place}", options={}, columns=[], rows_max=5, bytes_max=1000, columns_max=5))


def test_external_blob_is_described_and_not_opened(tmp_path: Path) -> None:
    """A reader gets the URI of an external blob; its file is not opened, whether it exists or not."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    for number, uri in enumerate((f"file://{secret}", "file:///nonexistent/x")):
        place = tmp_path / f"own{number}"
        schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")])
        blobs = lance.blob_array([lance.Blob.from_uri(uri)])
        table = pa.table({"id": pa.array([1]), "b": blobs}, schema=schema)
        lance.write_dataset(table, str(place), data_storage_version="2.2", allow_external_blob_outside_bases=True)

        rows = head(
            Head(location=f"file://{place}", options={}, columns=[], rows_max=5, bytes_max=10_000, columns_max=5)
        ).rows

        assert "secret" not in str(rows).replace(uri, "")
        assert uri in str(rows)


@pytest.mark.parametrize(
    "base, is_inside",
    [
        ("s3://lake/t", True),
        ("s3://lake/t/", True),
        ("s3://lake/t/tree/dev", True),
        ("s3://lake/t2", False),
        ("s3://lake/t/../t2", False),
        ("s3://other/t", False),
        ("/lake/t", False),
        ("gs://lake/t", False),
        ("s3://lake", False),
    ],
)
def test_object_store_paths_within_the_table_are_accepted(base: str, *, is_inside: bool) -> None:
    """Paths in an object store are accepted if they are in the table's own location."""
    assert canonical_location(base).is_relative_to(canonical_location("s3://lake/t")) is is_inside


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The versions at which tables were opened; None is the newest, which needs a list of all manifests."""
    opened_versions: list[int | None] = []
    library = lance.dataset

    def dataset(*place: str, version: int | None = None, **more: object) -> lance.LanceDataset:
        opened_versions.append(version)
        return library(*place, version=version, **more)

    monkeypatch.setattr(lance, "dataset", dataset)
    return opened_versions


def test_opening_a_version_does_not_read_the_newest_one(tmp_path: Path, opens: list[int | None]) -> None:
    """Opening a version does not list or read the newest one, so a damaged newest one has no effect. A missing version
    raises NotFound.
    """
    place = tmp_path / "t"
    for rows in (1, 2):
        lance.write_dataset(pa.table({"id": [1] * rows}), str(place), mode="append")
    for name in (place / "_versions").glob(f"{2**64 - 1 - 2}*"):
        name.write_bytes(b"damaged")
    opens.clear()

    assert count(Count(location=f"file://{place}", options={}, version=1)) == 1
    description = describe(Describe(location=f"file://{place}", options={}, version=1))

    assert description is not None
    assert (description.version, opens) == (1, [1, 1])
    with pytest.raises(NotFound, match="7"):
        describe(Describe(location=f"file://{tmp_path}/none", options={}, version=7))


def test_rows_are_added_to_the_opened_table_state(tmp_path: Path, opens: list[int | None]) -> None:
    """One opening determines whether the table exists and to what the rows are added."""
    place = tmp_path / "t"
    lance.write_dataset(pa.table({"id": [1]}), str(place))
    body = pa.BufferOutputStream()
    with pa.ipc.new_stream(body, pa.schema([("id", pa.int64())])) as writer:
        writer.write_table(pa.table({"id": [2]}))
    opens.clear()

    done = write(
        Write(location=f"file://{place}", options={}, mode="append", batch_bytes_max=1 << 20),
        BodyPieces(CompleteWire(body.getvalue().to_pybytes())),
    )  # type: ignore[arg-type]

    assert (done.version, done.inserted, opens) == (2, 1, [None])


class CompleteWire:
    """A wire on which a complete body has arrived."""

    def __init__(self, data: bytes) -> None:
        self.messages = [[MORE, data], [COMPLETE]]

    def receive(self) -> list[bytes]:
        """Return the next message."""
        return self.messages.pop(0)
