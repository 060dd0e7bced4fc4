"""Files of external datasets, as the server lists them for an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.services.sqlpp.execution import external_files
from limnos.services.sqlpp.execution.external_files import check_count, pin_files
from limnos.sqlpp import SqlppError
from limnos.sqlpp.jobs import DatasetRef, ExternalSource

TABLE = DatasetRef(("main", "a", "t"), "", ())


def ref_to(root: Path, *locations: Path, outside: tuple[Path, ...] = ()) -> DatasetRef:
    """Return an external dataset over some locations below a root that the server allows."""
    options = (("path", ",".join(each.as_uri() for each in locations)), ("format", "json"))
    files = ExternalSource("localfs", options, (root.as_uri(),), tuple(each.as_uri() for each in outside))
    return DatasetRef(("main", "a", "files"), "{ id: bigint }", (), files=files)


def paths_of(ref: DatasetRef) -> list[str]:
    """Return the paths of the pinned files."""
    assert ref.files is not None
    return [each.path for each in ref.files.pinned or ()]


def write(*paths: Path) -> None:
    """Write files, with their directories."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", encoding="utf-8")


def test_files_of_directory_are_pinned_in_order(tmp_path: Path) -> None:
    """All files below a directory are pinned in order, except hidden ones and those of closed directories; the name of
    a location may have any character.
    """
    folder, single, closed = tmp_path / "in ä%", tmp_path / "b.json", tmp_path / "in ä%" / "closed"
    write(folder / "z.json", folder / "a" / "b.json", folder / "_hidden", folder / ".hidden", single, closed / "c.json")
    (folder / "link.json").symlink_to(single)

    table, ref = pin_files((TABLE, ref_to(tmp_path, folder, single, outside=(closed,))))

    assert table is TABLE
    names = ["a/b.json", "link.json", "z.json"]
    assert paths_of(ref) == [*(str(folder / name) for name in names), str(single)]


def test_location_without_files_is_pinned_as_missing(tmp_path: Path) -> None:
    """A location without files has an entry that the engine refuses."""
    (ref,) = pin_files((ref_to(tmp_path, tmp_path / "absent"),))

    assert paths_of(ref) == [str(tmp_path / "absent")]
    assert ref.files is not None
    assert [each.inode for each in ref.files.pinned or ()] == [0]


def test_directory_behind_link_out_of_roots_is_not_listed(tmp_path: Path) -> None:
    """A link to a directory outside of the roots is pinned as missing, so that no error contains a name in there."""
    root, secret = tmp_path / "root", tmp_path / "secret"
    write(root / "a", secret / "name")
    (root / "link").symlink_to(secret)

    (ref,) = pin_files((ref_to(root, root / "link"),))

    assert paths_of(ref) == [str(root / "link")]


def test_too_many_files_of_statement_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of all external datasets of a statement are counted."""
    write(*(tmp_path / name / str(number) for name in "ab" for number in range(2)))
    monkeypatch.setattr(external_files, "FILES_MAX", 4)
    check_count(pin_files((ref_to(tmp_path, tmp_path / "a"), ref_to(tmp_path, tmp_path / "b"))))
    monkeypatch.setattr(external_files, "FILES_MAX", 3)

    with pytest.raises(SqlppError, match="at most 3 files"):
        check_count(pin_files((ref_to(tmp_path, tmp_path / "a"), ref_to(tmp_path, tmp_path / "b"))))
