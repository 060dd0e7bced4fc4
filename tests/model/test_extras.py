# SPDX-License-Identifier: Apache-2.0
"""Hints for missing packages: correct for a wheel and for a checkout, with existing extras only."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from limnos.model import extras
from limnos.model.extras import (
    MODULE_EXTRAS,
    SCHEME_EXTRAS,
    checkout_of,
    extra_of,
    install_hint,
    missing_module_text,
    missing_part,
)

ROOT = Path(__file__).parents[2]
STATED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
BROUGHT = {"azure", "google.protobuf", "google.auth", "hive_metastore", "lance_namespace", "pyarrow"}
"""Libraries that share a top-level package with others, or that are dependencies of an extra's packages."""


def test_hint_for_installed_wheel_names_package_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For an installed wheel the hint names the package's extras and no checkout."""
    installed = tmp_path / "lib" / "python3.11" / "site-packages" / "limnos" / "model" / "extras.py"
    (installed.parents[1] / "app").mkdir(parents=True)
    monkeypatch.setattr(extras, "__file__", str(installed))

    assert install_hint("server", "spark") == "pip install 'limnos[server,spark]'"
    assert missing_part("Locations s3:// need", ["s3"]) == (
        "Locations s3:// need a package that is not installed here: pip install 'limnos[s3]'"
    )


@pytest.mark.parametrize(
    "prefix,receipt,removal,hint",
    [
        ("cache/uv/archive-v0/EWynKP2ajXjniYcM", False, "", "uvx --from 'limnos[spark]' limnos …"),
        ("share/uv/tools/limnos", True, "uv tool uninstall limnos-client && ", "uv tool install 'limnos[spark]'"),
        ("work/.venv", False, "pip uninstall -y limnos-client && ", "pip install 'limnos[spark]'"),
    ],
)
@pytest.mark.parametrize("is_client", [False, True])
def test_hint_names_program_that_made_environment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    prefix: str,
    receipt: bool,
    removal: str,
    hint: str,
    is_client: bool,
) -> None:
    """Environments of uv have no pip: the hint for them names uv's own command. `limnos-client` is removed before
    `limnos` is installed, which has the same files.
    """
    environment = tmp_path / prefix
    (environment / "lib" / "limnos" / ("client" if is_client else "app")).mkdir(parents=True)
    if receipt:
        (environment / "uv-receipt.toml").touch()
    monkeypatch.setattr(extras, "__file__", str(environment / "lib" / "limnos" / "model" / "extras.py"))
    monkeypatch.setattr(sys, "prefix", str(environment))

    assert install_hint("spark") == (removal if is_client else "") + hint


def test_missing_modules_of_the_client_name_its_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the product that is missing is a matter of `limnos-client` alone; there, its extra is the server's.
    Libraries are named in both distributions.
    """
    client_only = "limnos-client has the command line and the client alone, and this command needs more"
    library = "the command needs 'duckdb', which is not installed"
    whole = [extra_of("limnos.app.server"), missing_module_text("limnos.app"), missing_module_text("duckdb")]
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "limnos" / "model" / "extras.py"))

    assert whole == [None, "the command needs 'limnos.app', which is not installed", library]
    assert [extra_of("limnos.app.server"), missing_module_text("limnos.app"), missing_module_text("duckdb")] == [
        "server",
        client_only,
        library,
    ]


def test_hint_for_checkout_names_make_setup() -> None:
    """For a checkout the hint names its path and `make setup`, which installs everything."""
    expected = f"in the checkout {ROOT} run: pip install -e '.[s3]' (or 'make setup', which installs everything)"

    assert checkout_of(ROOT / "src" / "limnos" / "model" / "extras.py") == ROOT
    assert install_hint("s3") == expected


def test_every_library_belongs_to_its_stated_extra() -> None:
    """Each library of the table belongs to the extra that the table names."""
    owners = packages_distributions()
    stated = {extra: {re.split(r"[\[><=]", each)[0].lower() for each in STATED[extra]} for extra in STATED}
    wrong = [
        module
        for module, extra in MODULE_EXTRAS.items()
        if module not in BROUGHT and not stated[extra] & {name.lower().replace("_", "-") for name in owners[module]}
    ]

    assert wrong == []
    assert set(SCHEME_EXTRAS.values()) <= set(STATED)


@pytest.mark.parametrize(
    "module,expected",
    [
        ("psycopg", "postgres"),
        ("google.auth.transport.requests", "gcs"),
        ("google.protobuf", "server"),
        ("json", None),
        ("google", None),
    ],
)
def test_extra_is_that_of_the_longest_module_name(module: str, expected: str | None) -> None:
    """The extra of a module is that of the longest known module name."""
    assert extra_of(module) == expected


def test_no_other_module_has_its_own_install_hint() -> None:
    """No other module has its own text of a hint to install an extra."""
    own = ROOT / "src" / "limnos" / "model" / "extras.py"
    files = [file for file in (ROOT / "src" / "limnos").rglob("*.py") if file != own]
    worded = re.compile(r"install (?:-e )?'(?:limnos|\.)\[")

    other_modules = [file.name for file in files if worded.search(file.read_text(encoding="utf-8"))]

    assert len(files) > 500
    assert other_modules == []
