# SPDX-License-Identifier: Apache-2.0
"""Each contract about layers is shown to fail on an import planted in a copy of the package.

That the package keeps them is checked by import-linter in `make lint`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.house.imports import import_graph, imported, imports_of
from tests.house.one_pass import PRODUCT, ROOT, Look

CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
CONTRACTS = {contract["id"]: contract for contract in CONFIG["contracts"]}

IMPORTS = Look(imported, *PRODUCT)
UPWARDS = {
    "manifests": "names",
    "names": "model",
    "model": "config",
    "config": "client",
    "confinement": "config",
    "telemetry": "config",
    "events": "telemetry",
    "client": "formats",
    "formats": "files",
    "sources": "files",
    "store": "view",
    "files": "store",
    "view": "access",
    "access": "services",
    "services": "spark",
    "spark": "http",
    "http": "app",
    "app": "cli",
    "cli": "pipeline",
    "pipeline": "rooms",
    "rooms": "testing",
}
"""Each room and one above or beside it, which it must not import."""

PLANTED = {
    "layers": ("names", "import limnos.model", "limnos.model"),
    "optional-rooms": ("rooms/jobs", "import limnos.rooms.lance.server", "limnos.rooms.lance"),
    "room-packages": (
        "rooms/gravitino/http",
        "import limnos.rooms.gravitino.server",
        "limnos.rooms.gravitino.server",
    ),
    "room-protocols": ("rooms/gravitino/http", "import limnos.http.admin.protocol", "limnos.http.admin"),
    "services": ("services/request", "import limnos.services.upkeep.tasks", "limnos.services.upkeep"),
    "sqlpp-packages": (
        "rooms/sqlpp/services/locks",
        "import limnos.rooms.sqlpp.services.execution.queries",
        "limnos.rooms.sqlpp.services.execution",
    ),
    "admin-packages": (
        "http/admin/catalog",
        "import limnos.http.admin.identity.users",
        "limnos.http.admin.identity",
    ),
    "console-packages": (
        "rooms/console/http/trash",
        "import limnos.rooms.console.http.access.people",
        "limnos.rooms.console.http.access",
    ),
    "store-packages": ("store/objects", "import limnos.store.backends.sqlite", "limnos.store.backends"),
    "client-packages": ("client/catalog", "import limnos.client.identity.users", "limnos.client.identity"),
    "cli-packages": ("cli/catalog", "import limnos.cli.identity.users", "limnos.cli.identity"),
    "decisions": ("rooms/gravitino/http", "from limnos.access.decide import decide", "limnos.access.decide"),
    "protocols": ("http/iceberg", "import limnos.http.admin.protocol", "limnos.http.admin"),
    "web": ("services", "from starlette.requests import Request", "starlette"),
    "sql": ("services", "from sqlalchemy import select", "sqlalchemy"),
    "drivers": ("view", "def read() -> None:\n    import sqlite3", "sqlite3"),
    "pyspark": ("cli", "from pyspark.sql import SparkSession", "pyspark"),
    "lance": ("formats", "import lance", "lance"),
    "outside": ("spark", "import limnos.services", "limnos.services"),
    "room-services": ("rooms/sqlpp/services", "import limnos.http.routing", "limnos.http"),
    "room-sources": ("rooms/connectors/sources", "import limnos.store.sql", "limnos.store"),
    "room-http": ("rooms/gravitino/http", "import limnos.app.deliveries", "limnos.app"),
    "language": ("rooms/sqlpp/language", "import limnos.files", "limnos.files"),
    "engine": ("rooms/sqlpp/engine", "import limnos.config", "limnos.config"),
    "client": ("client", "from limnos import config", "limnos.config"),
    "pure": ("names", "import asyncio", "asyncio"),
}
"""For each contract: a folder, the import in it that breaks the contract, and the text that the report must contain."""


PACKAGED = {
    "services": "services",
    "sqlpp-packages": "rooms/sqlpp/services",
    "store-packages": "store",
    "client-packages": "client",
    "cli-packages": "cli",
}
"""Contracts about the order of packages, and their rooms."""


def next_packages(contract: str) -> list[tuple[str, str]]:
    """Return each package of a room with the next one, which it must not import."""
    layers = [re.findall(r"\w+", layer) for layer in reversed(CONTRACTS[contract]["layers"])]
    room = ROOT / "src" / "limnos" / PACKAGED[contract]
    return list(pairwise(name for layer in layers for name in layer if len(layer) == 1 and (room / name).is_dir()))


def planted_files() -> Iterator[tuple[str, str]]:
    """Yield each planted file below the package, with its text: for contracts, for rooms, and for packages."""
    for contract, (folder, text, _) in PLANTED.items():
        yield f"{folder}/planted_{contract.replace('-', '_')}.py", text
    for room, above in UPWARDS.items():
        yield f"{room}/planted.py", f"import limnos.{above}"
    for contract, room in PACKAGED.items():
        for earlier, later in next_packages(contract):
            yield f"{room}/{earlier}/planted.py", f"import limnos.{room.replace('/', '.')}.{later}"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The report about each broken contract, on one line, for a copy of the package with all planted imports.

    import-linter runs once. `make lint` runs it on the package itself.
    """
    home = tmp_path_factory.mktemp("contracts")
    shutil.copytree(ROOT / "src" / "limnos", home / "limnos", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", home)
    for file, text in (*planted_files(), ("attic/__init__.py", ""), ("events/__init__.py", "")):
        (home / "limnos" / file).parent.mkdir(exist_ok=True)
        (home / "limnos" / file).write_text(f"{text}\n", encoding="utf-8")
    words = [
        str(Path(sys.executable).with_name("lint-imports")),
        "--no-logo",
        "--no-cache",
        "--config",
        "pyproject.toml",
    ]

    environment = {**os.environ, "COLUMNS": "400"}  # the report breaks lines at the width of the terminal
    done = subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 1, done.stderr
    names = {contract["name"]: key for key, contract in CONTRACTS.items()}
    heading = re.compile(rf"^({'|'.join(map(re.escape, names))})\n-+$", re.MULTILINE)
    _, *parts = heading.split(done.stdout)
    return {names[name]: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.parametrize("contract", CONTRACTS)
def test_planted_import_breaks_its_contract(reports: dict[str, str], contract: str) -> None:
    """A planted import breaks its contract, and the report names the file and what it imports."""
    folder, _, name = PLANTED[contract]
    module = f"limnos.{folder.replace('/', '.')}.planted_{contract.replace('-', '_')}"

    assert module in reports[contract]
    assert re.search(rf"{re.escape(module)} -> {re.escape(name)}", reports[contract])


def test_package_outside_layers_is_reported(reports: dict[str, str]) -> None:
    """A package that no layer names breaks the contract of the layers."""
    assert "attic" in reports["layers"]


def test_import_from_higher_room_is_reported(reports: dict[str, str]) -> None:
    """For every room, an import from a room above or beside it is reported."""
    report = reports["layers"]

    assert [
        room
        for room, above in UPWARDS.items()
        if f"limnos.{room} is not allowed to import limnos.{above}" not in report
    ] == []


@pytest.mark.parametrize("contract", PACKAGED)
def test_import_from_next_package_is_reported(reports: dict[str, str], contract: str) -> None:
    """For each package of a room, an import from the next one is reported."""
    above, pairs = f"limnos.{PACKAGED[contract].replace('/', '.')}", next_packages(contract)

    assert len(pairs) > 2
    assert [
        pair
        for pair in pairs
        if f"{above}.{pair[0]} is not allowed to import {above}.{pair[1]}" not in reports[contract]
    ] == []


def test_modules_have_no_import_cycle() -> None:
    """No chain of imports leads from a module back to it, including imports for types."""
    try:
        tuple(TopologicalSorter(import_graph(IMPORTS.results)).static_order())
    except CycleError as error:
        pytest.fail("a circle of imports: " + " -> ".join(error.args[1]))


def test_import_cycle_is_detected(tmp_path: Path) -> None:
    """Two modules that import each other, one only for types, are a cycle."""
    (tmp_path / "one.py").write_text("import two\n", encoding="utf-8")
    (tmp_path / "two.py").write_text("if TYPE_CHECKING:\n    from one import One\n", encoding="utf-8")

    with pytest.raises(CycleError):
        TopologicalSorter(imports_of(tmp_path)).prepare()


def test_every_room_has_a_planted_violation() -> None:
    """The layers list every existing room, and the list above covers each one that has a room above it."""
    rooms = {folder.name for folder in (ROOT / "src" / "limnos").iterdir() if (folder / "__init__.py").exists()}

    untried = rooms - set(UPWARDS) - set(UPWARDS.values())

    assert untried == set()


def test_every_protocol_is_in_the_contract() -> None:
    """Every package below http is a protocol, and the contract about protocols lists it."""
    http = ROOT / "src" / "limnos" / "http"
    protocols = {folder.name for folder in http.iterdir() if (folder / "__init__.py").exists()}

    named = set(re.findall(r"\w+", CONTRACTS["protocols"]["layers"][0]))

    assert protocols
    assert protocols <= named


def test_base_install_imports_no_server_room() -> None:
    """Importing the command line and the client imports neither the server's rooms nor the libraries of extras."""
    heavy = (
        "sqlalchemy",
        "uvicorn",
        "starlette",
        "pyspark",
        "psycopg",
        "asyncpg",
        "google.protobuf",
        "fsspec",
        "limnos.app",
    )
    program = f"import sys, limnos.cli.main, limnos.client\nprint([name for name in {heavy!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
