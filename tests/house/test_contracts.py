# SPDX-License-Identifier: Apache-2.0
"""The layer contracts hold, and each one is shown to fail on an import planted in a copy of the package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.house.imports import imports_of

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
CONTRACTS = {contract["id"]: contract for contract in CONFIG["contracts"]}

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
    "sqlpp": "formats",
    "sources": "files",
    "store": "view",
    "files": "store",
    "view": "access",
    "access": "services",
    "services": "spark",
    "spark": "engine",
    "engine": "pipeline",
    "pipeline": "http",
    "http": "app",
    "app": "cli",
    "cli": "rooms",
    "rooms": "testing",
}
"""Each room and one above or beside it, which it must not import."""

PLANTED = {
    "layers": ("attic/__init__.py", "", "attic"),
    "optional-rooms": ("rooms/jobs/planted.py", "import limnos.rooms.lance.server", "limnos.rooms.lance"),
    "services": ("services/request/planted.py", "import limnos.services.upkeep.tasks", "limnos.services.upkeep"),
    "sqlpp-packages": (
        "services/sqlpp/locks/planted.py",
        "import limnos.services.sqlpp.execution.queries",
        "limnos.services.sqlpp.execution",
    ),
    "admin-packages": (
        "http/admin/catalog/planted.py",
        "import limnos.http.admin.identity.users",
        "limnos.http.admin.identity",
    ),
    "console-packages": (
        "http/console/lineage/planted.py",
        "import limnos.http.console.pipelines.runs",
        "limnos.http.console.pipelines",
    ),
    "store-packages": ("store/objects/planted.py", "import limnos.store.backends.sqlite", "limnos.store.backends"),
    "client-packages": ("client/catalog/planted.py", "import limnos.client.identity.users", "limnos.client.identity"),
    "cli-packages": ("cli/catalog/planted.py", "import limnos.cli.identity.users", "limnos.cli.identity"),
    "decisions": ("http/planted.py", "from limnos.access.decide import decide", "limnos.access.decide"),
    "protocols": ("http/iceberg/planted.py", "import limnos.http.gravitino", "limnos.http.gravitino"),
    "web": ("services/planted.py", "from starlette.requests import Request", "starlette"),
    "sql": ("services/planted.py", "from sqlalchemy import select", "sqlalchemy"),
    "drivers": ("view/planted.py", "def read() -> None:\n    import sqlite3", "sqlite3"),
    "pyspark": ("cli/planted.py", "from pyspark.sql import SparkSession", "pyspark"),
    "lance": ("formats/planted.py", "import lance", "lance"),
    "outside": ("spark/planted.py", "import limnos.services", "limnos.services"),
    "engine": ("engine/planted.py", "import limnos.config", "limnos.config"),
    "client": ("client/planted.py", "from limnos import config", "limnos.config"),
    "pure": ("names/planted.py", "import asyncio", "asyncio"),
}
"""For each contract: a file, the import that breaks it, and the text that the report must contain."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and its contracts, with every room that a contract covers, in which violations are
    planted.
    """
    home = tmp_path_factory.mktemp("contracts")
    shutil.copytree(ROOT / "src" / "limnos", home / "limnos", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", home)
    for room in {*UPWARDS, *UPWARDS.values(), "http/gravitino", "http/iceberg"}:
        (home / "limnos" / room).mkdir(parents=True, exist_ok=True)
        (home / "limnos" / room / "__init__.py").touch()
    return home


@contextmanager
def planted(home: Path, file: str, text: str) -> Iterator[None]:
    """Put a file into the copy for the body of a `with`, and remove it with its folder."""
    target = home / "limnos" / file
    new_folder = not target.parent.exists()
    target.parent.mkdir(exist_ok=True)
    target.write_text(f"{text}\n", encoding="utf-8")
    try:
        yield
    finally:
        shutil.rmtree(target.parent) if new_folder else target.unlink()


def lint(home: Path, *contracts: str) -> tuple[int, str]:
    """Run import-linter in a folder; returns its exit code and its report on one line. Its cache is in the folder."""
    tool = Path(sys.executable).with_name("lint-imports")
    words = [str(tool), "--no-logo", "--cache-dir", ".imports", "--config", "pyproject.toml"]
    words += [word for contract in contracts for word in ("--contract", contract)]
    done = subprocess.run(words, cwd=home, capture_output=True, text=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_package_keeps_import_contracts(copy: Path) -> None:
    """The package keeps every contract."""
    code, report = lint(copy)

    assert code == 0, report
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in report


@pytest.mark.parametrize("contract", CONTRACTS)
def test_planted_import_breaks_its_contract(copy: Path, contract: str) -> None:
    """A planted import breaks exactly its contract, and the report names the import."""
    file, text, named = PLANTED[contract]

    with planted(copy, file, text):
        code, report = lint(copy, contract)

    assert code != 0
    assert "0 kept, 1 broken" in report
    assert named in report


def test_import_from_higher_room_is_reported(copy: Path) -> None:
    """For every room, an import from a room above or beside it is reported."""
    for room, above in UPWARDS.items():
        (copy / "limnos" / room / "planted.py").write_text(f"import limnos.{above}\n", encoding="utf-8")

    code, report = lint(copy, "layers")
    for room in UPWARDS:
        (copy / "limnos" / room / "planted.py").unlink()

    missing = [
        room
        for room, above in UPWARDS.items()
        if f"limnos.{room} is not allowed to import limnos.{above}" not in report
    ]
    assert code != 0
    assert missing == []


@pytest.mark.parametrize(
    "contract, room",
    [
        ("services", "services"),
        ("sqlpp-packages", "services/sqlpp"),
        ("store-packages", "store"),
        ("client-packages", "client"),
        ("cli-packages", "cli"),
    ],
)
def test_import_from_next_package_is_reported(copy: Path, contract: str, room: str) -> None:
    """For each package of a room, an import from the next one is reported."""
    layers = [re.findall(r"\w+", layer) for layer in reversed(CONTRACTS[contract]["layers"])]
    above = f"limnos.{room.replace('/', '.')}"
    packages = [
        name for layer in layers for name in layer if (copy / "limnos" / room / name).is_dir() and len(layer) == 1
    ]
    pairs = list(pairwise(packages))
    for earlier, later in pairs:
        file = copy / "limnos" / room / earlier / "planted.py"
        file.write_text(f"import {above}.{later}\n", encoding="utf-8")

    code, report = lint(copy, contract)
    for earlier, _ in pairs:
        (copy / "limnos" / room / earlier / "planted.py").unlink()

    named = f"{above}.{{}} is not allowed to import {above}.{{}}"
    assert len(pairs) > 2
    assert code != 0
    assert [pair for pair in pairs if named.format(*pair) not in report] == []


def test_modules_have_no_import_cycle() -> None:
    """No chain of imports leads from a module back to it, including imports for types."""
    try:
        tuple(TopologicalSorter(imports_of(ROOT / "src")).static_order())
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
