# SPDX-License-Identifier: Apache-2.0
"""Packaging, make targets, the integration script and the top-level documents are consistent."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

import limnos
from limnos.model.declared_kinds import DECLARED, DeclaredKind, ObjectFields
from limnos.model.kinds import Kind
from scripts import generate_docs, get_uv

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = ("setup", "demo", "test", "lint", "fix", "bench", "conformance", "help")


class NotebookFields(ObjectFields, frozen=True):
    """The own fields of a kind that this module alone declares."""

    run_by: Annotated[str, msgspec.Meta(description="Program that runs it.")] = ""
    cells: Annotated[tuple[str, ...], msgspec.Meta(description="Text of a cell.")] = ()


def run(*words: str | Path, cwd: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with an environment that has only a PATH, which begins with the given folder."""
    environment = {"PATH": f"{path}:{os.defpath}", "HOME": str(cwd)}
    return subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def program(folder: Path, name: str, text: str) -> Path:
    """Write an executable shell script and return its folder."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    (folder / name).chmod(0o755)
    return folder


def test_help_names_every_target() -> None:
    """`make help` prints each target with a description."""
    done = run("make", "help", cwd=ROOT, path=Path("/usr/bin"))

    descriptions = dict(re.findall(r"^  make ([a-z-]+) +(\S.+)$", done.stdout, flags=re.MULTILINE))
    assert done.returncode == 0, done.stderr
    assert set(TARGETS) <= set(descriptions)


@pytest.mark.parametrize(
    "failing,code,target_count", [("none", 0, 4), ("lint", 2, 2), ("test", 2, 3), ("test-without", 0, 4)]
)
def test_ci_run_stops_at_the_first_failure(tmp_path: Path, failing: str, code: int, target_count: int) -> None:
    """The integration script runs set-up, lint and test, and exits with the code of the first failure. A failure of
    test-without is only reported.
    """
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    fake = program(tmp_path / "bin", "make", f'echo "asked $1"; [ "$1" != {failing} ] || exit 2')

    done = run(tmp_path / ".ci" / "run", cwd=tmp_path, path=fake)

    assert done.returncode == code, done.stderr
    assert done.stdout.count("asked") == target_count
    assert ("make test-without failed" in done.stdout) == (failing == "test-without")


def test_setup_fails_without_required_python(tmp_path: Path) -> None:
    """Without Python 3.11 or later the set-up fails, and its message names the version and a remedy."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    tools = tmp_path / "bin"
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14", "python"):
        program(tools, name, 'echo "Python 3.8.1"; exit 1')

    done = run("/bin/sh", "scripts/setup.sh", cwd=tmp_path, path=tools)

    assert done.returncode == 1
    assert "Python 3.8.1" in done.stderr
    assert "make setup PYTHON=" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_wheel_of_this_machine_is_chosen() -> None:
    """Without pip, the uv wheel is selected by version, system and processor, with the hash of the index."""
    names = (
        "uv-1.2.3.tar.gz",
        "uv-1.2.3-py3-none-macosx_11_0_arm64.whl",
        "uv-1.2.30-py3-none-manylinux_2_17_x86_64.whl",
    )
    wheel_name = "uv-1.2.3-py3-none-manylinux_2_17_x86_64.whl"
    index = "".join(f'<a href="../../files/{name}#sha256={"0" * 64}">{name}</a>' for name in names)
    index += f'<a href="../../files/{wheel_name}#sha256={"a" * 64}">{wheel_name}</a>'

    url, sha256 = get_uv.wheel_of(index, "1.2.3", ("manylinux", "x86_64"))

    assert url.endswith(f"/files/{wheel_name}")
    assert sha256 == "a" * 64


def test_unknown_machine_error_has_remedy() -> None:
    """The error for a machine without a uv wheel on PyPI says what to install."""
    with pytest.raises(SystemExit, match="install python3-venv"):
        get_uv.wheel_of("", "1.2.3", ("manylinux", "vax"))


def test_lock_names_public_hosts_only() -> None:
    """Every locked package can be downloaded from PyPI."""
    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")

    hosts = set(re.findall(r"https?://([^/\"]+)", lock))

    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_lock_holds_every_requirement() -> None:
    """The lock has every required package, including those of extras."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    locked = {package["name"] for package in lock["package"]}
    requirements = [
        *PROJECT["dependencies"],
        *(word for extra in PROJECT["optional-dependencies"].values() for word in extra),
    ]

    missing = {
        name
        for word in requirements
        if (name := re.split(r"[\[<>=~! ]", word)[0].lower().replace("_", "-")) not in locked
    }

    assert missing == set()


def test_version_is_the_same_everywhere() -> None:
    """The package, the project and the newest changelog entry have the same version."""
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert newest is not None
    assert limnos.__version__ == PROJECT["version"] == newest[1]


def test_readme_names_commands_clients_and_pictures() -> None:
    """The README names the commands, shows how each kind of client connects, and its pictures are small."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    missing = [
        word
        for word in ("make demo", "make test", "limnos.spark.session", "load_catalog", "GravitinoClient")
        if word not in readme
    ]
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", readme)

    assert missing == []
    assert len(pictures) >= 2
    assert [name for name in pictures if (ROOT / name).stat().st_size > 150_000] == []


@pytest.mark.parametrize(
    "page", sorted(file.relative_to(ROOT).as_posix() for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
)
def test_relative_links_resolve(page: str) -> None:
    """Every relative link of a document leads to an existing file."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]

    broken = [link for link in links if not ((ROOT / page).parent / link).exists()]

    assert broken == []


def test_decisions_are_indexed() -> None:
    """Every decision record is named `NNNN-title.md`, numbers are unique, and the index links each."""
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    records = sorted(file.name for file in folder.glob("*.md") if file.name != "README.md")

    numbers = [name[:4] for name in records if re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name)]

    assert len(set(numbers)) == len(records)
    assert [name for name in records if f"({name})" not in index] == []


def test_generated_pages_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    """The tables of errors and metrics equal the output of `make docs`."""
    code = generate_docs.main(check=True)

    assert code == 0, capsys.readouterr().out


def test_declared_kind_brings_its_rows_of_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new declaration adds the rows of its routes, its command with the own fields, and its client resource."""
    notebook = DeclaredKind(
        kind=Kind.DATATYPE, plural="notebooks", fields=NotebookFields, create_right="CREATE_TABLE", about="a program."
    )
    monkeypatch.setattr(generate_docs, "DECLARED", (*DECLARED, notebook))
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")

    routes = [row for row in generate_docs.declared_route_rows() if "/notebooks/{namespace}" in row]
    (command,) = set(generate_docs.with_declared_commands(page).splitlines()) - set(page.splitlines())

    assert [re.findall(r"`([A-Z]+) ", row)[0] for row in routes] == ["GET", "POST", "GET", "PUT", "DELETE"]
    assert '"name", "comment", "properties", "run_by", "cells"' in routes[1]
    assert routes[1].endswith("| CREATE_TABLE or owner of the namespace |")
    assert command == (
        "| `create datatype PATH` | Creates a datatype: a program. `--run-by`: Program that runs it."
        " `--cells` (repeatable): Text of a cell. Also `--comment` and `--property KEY=VALUE` (repeatable). |"
        " `client.notebooks` |"
    )


def test_helpers_of_tests_are_listed() -> None:
    """Each module without tests is on the page of helpers, with what it is for, and the page is short."""
    page = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    helpers = {each.name for each in (ROOT / "tests").rglob("*.py") if not each.name.startswith(("test_", "__init__"))}

    listed = set(re.findall(r"`(\w+\.py)`: [^<| ]", page))

    assert len(helpers) > 100
    assert helpers - listed == set()
    assert page.count("\n") <= 120


def test_threats_name_existing_tests() -> None:
    """Each threat of SECURITY.md names a protection, and tests that exist."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## Threat model")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"][2:]

    assert len(rows) >= 25
    for threat, protection, tests in rows:
        assert threat
        assert protection
        assert re.fullmatch(r"`tests/[\w/]+\.py::test_\w+`(<br>`tests/[\w/]+\.py::test_\w+`)*", tests), threat
        for file, name in re.findall(r"`([^`]+)::(\w+)`", tests):
            assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), name


def test_extra_all_is_every_other_extra() -> None:
    """`limnos[all]` installs all other extras."""
    extras = PROJECT["optional-dependencies"]

    assert re.fullmatch(r"limnos\[(.+)\]", extras["all"][0])
    assert sorted(extras["all"][0][7:-1].split(",")) == sorted(extras.keys() - {"all"})


def test_base_dependencies_stay_light() -> None:
    """The base install has no dependency of the server, a database or Spark."""
    heavy = re.compile(r"sqlalchemy|uvicorn|starlette|pyspark|psycopg|asyncpg|protobuf|pandas|pyarrow")

    assert [word for word in PROJECT["dependencies"] if heavy.match(word)] == []
