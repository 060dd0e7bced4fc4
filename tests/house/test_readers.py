# SPDX-License-Identifier: Apache-2.0
"""No reader bypasses the rule for files of tables: modules that open files by a path are listed here."""

from __future__ import annotations

import ast

import pytest

from tests.house.one_pass import Look
from tests.house.tidy import SourceFile

READS = frozenset({"read_within", "read_first_within", "read_anywhere", "open_ranges", "resolve_within"})
"""Functions and methods that open a file whose path somebody chose."""
READS_OF_FILES = frozenset({"read", "size"})
"""Methods that do so if the object before them is named `files`, `store_for(…)` or `LOCAL_FILES`."""
THE_RULE = "services/storage/table_files.py"
OTHERS = {
    "app/preview_files.py": (
        "data files of plans, which `TableScan` has checked, within the locations of that plan; files of filesets"
    ),
    "services/iceberg/spans/writing.py": (
        "data files of plans, which `TableScan` has checked, within the locations of that plan"
    ),
    "services/iceberg/spans/verification.py": "restricted files of an executor, within the directory of its operation",
    "files/ranges.py": "the mechanism itself",
    "files/symbolic_links.py": "the mechanism itself",
    "services/iceberg/table_checks.py": "sizes, by `TableFiles`",
    "services/iceberg/orphan_fence.py": "sizes, by `TableFiles`",
    "services/iceberg/added_files.py": "sizes, by `TableFiles`",
    "rooms/maintenance/services/rewriting/rewrite_commits.py": "manifests, by `TableFiles`",
    "services/iceberg/registered_tables.py": (
        "a metadata file that a user registers, within the catalog's roots: its content is checked before it counts"
    ),
    "services/iceberg/views.py": "a view's metadata file that a user registers, within the catalog's roots",
    "rooms/lance/services/manifests.py": "manifests of Lance with names that the server makes, below the table's location",
    "rooms/maintenance/services/orphans/references.py": "references of other tables, which only protect files from removal",
    "rooms/maintenance/services/table_storage.py": "references of other tables, which only protect files from removal",
    "services/request/files.py": "the mechanism itself",
    "services/storage/purges.py": "files of a dropped table, below its locations, which the task deletes",
    "services/vending/storage_checks.py": "the check's own file",
}
"""Modules that open files by a path without `TableFiles`, with the files and the reason."""


def opens_files(module: SourceFile) -> bool:
    """Return whether a module opens files by a path."""
    for node in module.nodes(ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in READS:
            return True
        of = node.func.value if isinstance(node.func, ast.Attribute) and name in READS_OF_FILES else None
        if isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id == "store_for":
            return True
        if getattr(of, "attr", getattr(of, "id", "")).strip("_") in ("files", "LOCAL_FILES"):
            return True
    return False


OPENERS = Look(
    opens_files, *(f"src/limnos/{room}" for room in ("app", "files", "formats", "http", "rooms", "services"))
)


def test_modules_that_open_files_by_path_are_listed() -> None:
    """The modules of the server that open files by a path are the rule's own and exactly those on the list."""
    openers = {path.removeprefix("src/limnos/") for path, opens in OPENERS.results.items() if opens}

    assert sorted(openers) == sorted({THE_RULE, *OTHERS})


@pytest.mark.parametrize(
    "text, is_opener",
    [
        ("await ctx.services.files.read(location, properties)", True),
        ("await self._files.read_within(location, properties, roots)", True),
        ("read_within(location, roots, allowed)", True),
        ("store_for(location, properties).read(location)", True),
        ("LOCAL_FILES.read(location)", True),
        ("await files.size(location, properties, roots=roots)", True),
        ("await reader.read(location)", False),
    ],
)
def test_module_that_opens_files_is_detected(text: str, is_opener: bool) -> None:
    """A module that opens files is found for every way to open one, and one that uses the rule is not."""
    assert opens_files(SourceFile("src/limnos/app/a.py", f"async def look():\n    {text}\n")) == is_opener
