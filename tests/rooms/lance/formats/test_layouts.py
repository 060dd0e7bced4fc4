# SPDX-License-Identifier: Apache-2.0
"""The layout of a directory of Lance tables, derived from file names alone."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest, InvalidTable
from limnos.rooms.lance.formats.layouts import (
    DirectoryLayout,
    ManifestRow,
    ManifestRowKind,
    TableFolder,
    children_of,
    folder_of,
    folder_table,
    foreign_names,
    layout_of,
    nested_folder_of,
    object_id_of,
    place_below,
    root_of,
    row_of,
    tables_of,
)


@pytest.mark.parametrize(
    "folders, layout",
    [
        ([], None),
        ([".git"], None),
        (["table1", "table2"], DirectoryLayout.V0),
        (["a.lance", "plain"], DirectoryLayout.V1),
        (["__manifest", "a.lance"], DirectoryLayout.V2),
        (["__manifest"], DirectoryLayout.V2),
    ],
)
def test_layout_is_detected_from_folders(folders: list[str], layout: DirectoryLayout | None) -> None:
    """An index means layout V2, a folder with the suffix V1, and any other folder V0. Hidden folders are ignored."""
    assert layout_of(folders) is layout


def test_v0_folders_are_tables() -> None:
    """In V0 each folder is a table with the folder's name, whatever it contains. Hidden folders are not tables."""
    assert tables_of(["table2", "table1", ".tmp"], DirectoryLayout.V0) == [
        TableFolder("table1", "table1"),
        TableFolder("table2", "table2"),
    ]


def test_v1_folder_without_suffix_is_not_a_table() -> None:
    """In V1 a folder without the suffix, or with nothing before it, is not a table."""
    assert tables_of(["b.lance", "plain", ".lance", "a.lance"], DirectoryLayout.V1) == [
        TableFolder("a", "a.lance"),
        TableFolder("b", "b.lance"),
    ]


@pytest.mark.parametrize("name", ["a/b", ".hidden", "__manifest", "", "a%41", "a#b"])
def test_table_name_without_valid_folder_is_refused(name: str) -> None:
    """A table name that a folder could not represent uniquely is refused."""
    with pytest.raises(BadRequest, match="cannot be the name"):
        folder_of(name, DirectoryLayout.V0)


@pytest.mark.parametrize("layout", list(DirectoryLayout))
@pytest.mark.parametrize("name", ["docs", "a b", "é", "x.lance"])
def test_table_folder_round_trip(name: str, layout: DirectoryLayout) -> None:
    """The folder for a table's name is read back as that table."""
    folder = folder_of(name, layout)

    assert folder_table(folder, layout) == TableFolder(name, folder)


def test_nested_table_folder_has_no_special_uri_characters() -> None:
    """The folder of a nested table is unique by its digits. It contains the names for readability, truncated and
    without special characters of URIs.
    """
    assert nested_folder_of(("a", "b c", "t/1%41"), digits="00aa11bb") == "00aa11bb_a$b_c$t_1_41"
    assert len(nested_folder_of(("n" * 200, "t"), digits="00aa11bb")) == 109


def test_rows_of_the_index_are_read() -> None:
    """Rows of the index have names joined by `$`. Properties that are not texts are omitted, and rows of other kinds
    are ignored.
    """
    row = row_of("a$b", "namespace", location=None, metadata='{"k": "v", "n": 1}')

    assert row == ManifestRow(("a", "b"), ManifestRowKind.NAMESPACE, None, {"k": "v"})
    assert row_of("a$t", "table", location="x_a$t", metadata="[broken") == ManifestRow(
        ("a", "t"), ManifestRowKind.TABLE, "x_a$t", {}
    )
    assert row_of("a$t$1", "table_version", location=None, metadata=None) is None


def test_children_are_those_one_level_below() -> None:
    """The children of a namespace are exactly one level below it."""
    spaces = [
        ManifestRow(levels, ManifestRowKind.NAMESPACE, None, {})
        for levels in (("a",), ("a", "c"), ("a", "b"), ("a", "b", "d"), ("e",))
    ]

    assert [row.levels for row in children_of(spaces, ("a",), kind=ManifestRowKind.NAMESPACE)] == [
        ("a", "b"),
        ("a", "c"),
    ]
    assert children_of(spaces, ("a",), kind=ManifestRowKind.TABLE) == []


def test_name_with_separator_is_refused() -> None:
    """A name that contains the separator is refused, because the index would be ambiguous."""
    with pytest.raises(BadRequest, match="separates names"):
        object_id_of(("a$b",))


@pytest.mark.parametrize("location", ["../x", "/etc", "a/../../x", "s3://b/x", "..", ".", "", "file:///x"])
def test_index_row_outside_directory_is_refused(location: str) -> None:
    """An index row that names a folder outside of the directory is refused."""
    with pytest.raises(InvalidTable, match="outside of it"):
        place_below("/root", location)


@pytest.mark.parametrize(
    "text, root",
    [
        ("s3://bucket/prefix/", "s3://bucket/prefix"),
        ("/my/dir/", "/my/dir"),
        ("my/dir2", "/here/my/dir2"),
        ("./my/dir3", "/here/my/dir3"),
        ("../up", "/up"),
        ("file:///my/dir/", "/my/dir"),
        ("file:/my/dir/", "/my/dir"),
        ("FILE:/my", "/my"),
    ],
)
def test_a_directory_is_a_uri_or_a_path(text: str, root: str) -> None:
    """A directory is given by a URI or a path. A relative path is resolved against the current directory."""
    assert root_of(text, here="/here") == root


def test_non_lance_files_are_foreign() -> None:
    """Files that are not Lance's are foreign. Markers and Lance's own folders belong to the table."""
    assert foreign_names(["data", "_versions", ".lance-reserved", "notes.txt"]) == ["notes.txt"]
