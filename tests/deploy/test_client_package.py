# SPDX-License-Identifier: Apache-2.0
"""The distribution `limnos-client`: its modules, its commands, and those that it lacks the code for."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from limnos.model.extras import MODULE_EXTRAS
from scripts.client_package import client_files, write_project
from tests.http.sockets import ServedNode
from tests.installed import ALL_ROOMS

pytestmark = [pytest.mark.integration, *(pytest.mark.room(each) for each in ALL_ROOMS)]
ROOT = Path(__file__).parents[2]
RUN = "from limnos.cli.main import main; sys.exit(main())"
Done = subprocess.CompletedProcess[str]
Client = Callable[..., Done]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """Runs a program that imports Limnos from the files of `limnos-client`, without the libraries of extras."""
    folder = tmp_path_factory.mktemp("client")
    write_project(ROOT, folder / "project")
    (folder / "project/src").rename(folder / "site-packages")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LIMNOS_")}
    environ |= {"PYTHONPATH": str(folder / "site-packages"), "LIMNOS_PROFILES": str(folder / "profiles.json")}

    def run(program: str, *arguments: str) -> Done:
        text = f"import sys; sys.modules.update(dict.fromkeys({sorted(MODULE_EXTRAS)!r}))\n{program}"
        words = [sys.executable, "-c", text, *arguments]
        return subprocess.run(words, env=environ, cwd=folder, capture_output=True, text=True, check=False, timeout=300)

    return run


def test_client_imports_each_of_its_modules(client: Client) -> None:
    """Each module of `limnos-client` can be imported with the base dependencies alone, and the server is not there."""
    source = ROOT / "src"
    files = [file.relative_to(source).with_suffix("") for file in client_files(source) if file.suffix == ".py"]
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]

    done = client(
        "import importlib\nfor name in sys.argv[1:]: importlib.import_module(name)\nimport limnos.app", *names
    )

    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'limnos.app'"
    assert len(names) > 300


def test_client_lacks_only_modules_that_commands_name_when_they_need_them() -> None:
    """What functions of `limnos-client` import and what it lacks is a part of a command that works on files or runs
    Spark by itself.
    """
    source = ROOT / "src"
    files = set(client_files(source))
    imported = {
        node.module
        for file in files
        if file.suffix == ".py"
        for function in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("limnos.")
    }
    paths = {name: source.joinpath(*name.split(".")) for name in imported}
    missing = {
        name for name, path in paths.items() if files.isdisjoint((path.with_suffix(".py"), path / "__init__.py"))
    }

    assert missing == {
        "limnos.files",  # migrate from a directory
        "limnos.formats.iceberg",
        "limnos.rooms.maintenance.engine.executor",  # maintenance work
        "limnos.spark",  # the helper process of pipelines
        "limnos.spark.machine",
    }


@pytest.mark.parametrize(
    "command,extras",
    [
        ("server start", "server"),
        ("server check", "server"),
        ("demo", "server,spark,demo"),
        ("pipeline check x.yaml", "pipelines"),
        ("pipeline run x.yaml", "spark"),
        ("spark jars", "spark"),
        ("lance list .", "server,lance"),
    ],
)
def test_server_command_names_the_distribution_to_install(client: Client, command: str, extras: str) -> None:
    """A command that `limnos-client` lacks the code for says so, with the command that installs the whole product."""
    done = client(RUN, *command.split())

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "limnos-client has the command line and the client alone, and this command needs more" in done.stderr
    assert f"pip uninstall -y limnos-client && pip install 'limnos[{extras}]'" in done.stderr


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server of the tree."""
    node = ServedNode(tmp_path_factory.mktemp("served"), lane=True)
    yield f"http://127.0.0.1:{node.port}"
    node.stop()


def test_client_works_on_a_server(client: Client, uri: str) -> None:
    """Commands of the kernel and of rooms, and the Python client, work against a server of the tree."""
    flags = ("--uri", uri, "--user", "admin")
    done = [
        client(RUN, *command.split(), *flags)
        for command in (
            "create namespace main.sales",
            "list main --output json",
            "find sales",
            "maintenance plan main",
            "grnat main",
            "migrate from directory . --to main",
        )
    ]
    program = f"from limnos.client import Client; print(Client({uri!r}, user='admin').namespaces.list('main'))"

    assert [each.returncode for each in done] == [0, 0, 0, 0, 2, 1], [each.stderr for each in done]
    assert "sales" in done[1].stdout
    assert "limnos grant" in done[4].stderr
    assert "limnos-client has the command line and the client alone" in done[5].stderr
    assert "sales" in client(program).stdout
