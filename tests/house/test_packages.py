# SPDX-License-Identifier: Apache-2.0
"""Packages are small, and few imports cross packages of services."""

from __future__ import annotations

from pathlib import Path

from tests.house.imports import import_graph, imported, imports_of
from tests.house.one_pass import PRODUCT, Look
from tests.house.packages import CROSS_EDGES_MAX, FILES_MAX, LINES_MAX, SRC, cross_edges, oversized

IMPORTS = Look(imported, *PRODUCT)


def test_no_package_is_too_large() -> None:
    """A package below services, store, http, cli, client and rooms has at most 30 files and 6,000 lines."""
    assert oversized(SRC) == []


def test_too_large_packages_are_reported(tmp_path: Path) -> None:
    """One file or one line too many is reported, in an inner package and in an outer one."""
    many, long = tmp_path / "limnos/services/many", tmp_path / "limnos/http/admin/long"
    for folder in (many, long):
        folder.mkdir(parents=True)
    for number in range(FILES_MAX):
        (many / f"m{number}.py").touch()
    (long / "lines.py").write_text("\n" * LINES_MAX, encoding="utf-8")
    assert oversized(tmp_path) == []

    (many / "one_more.py").touch()
    (long / "one_more.py").write_text("\n", encoding="utf-8")

    assert [line.partition(":")[0] for line in oversized(tmp_path)] == [
        "limnos/services/many",
        "limnos/http/admin/long",
    ]


def test_imports_between_service_packages_do_not_grow() -> None:
    """The number of imports between packages of services does not grow. Move code to its package instead of raising the
    limit.
    """
    edges = cross_edges(import_graph(IMPORTS.results))

    assert len(edges) <= CROSS_EDGES_MAX, (
        f"{len(edges)} imports between packages of services, at most {CROSS_EDGES_MAX} are allowed: move a new module"
        " into the package that it imports; python -m tests.house.packages counts the imports of each pair"
    )


def test_crossing_imports_are_counted(tmp_path: Path) -> None:
    """An import of another package counts once for each pair of modules; one of the own package or the kernel does
    not.
    """
    for name in ("request/context.py", "catalog/tables.py", "iceberg/commits.py", "iceberg/tables.py"):
        file = tmp_path / "limnos/services" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / "limnos/services/iceberg/commits.py").write_text(
        "from limnos.services.request import context\n"
        "from limnos.services.iceberg.tables import table_create\n"
        "from limnos.services.catalog.tables import table_find\n"
        "if TYPE_CHECKING:\n    from limnos.services.catalog.tables import NewTable\n",
        encoding="utf-8",
    )

    assert cross_edges(imports_of(tmp_path)) == [("limnos.services.iceberg.commits", "limnos.services.catalog.tables")]
