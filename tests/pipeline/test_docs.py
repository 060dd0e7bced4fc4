# SPDX-License-Identifier: Apache-2.0
"""docs/start/pipelines.md and docs/guides/run-pipelines.md: their files are valid, their commands print the documented
output, their functions work.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from pathlib import Path

import pytest

from limnos.cli.main import main
from limnos.pipeline.file import load

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "start" / "pipelines.md", DOCS / "guides" / "run-pipelines.md"]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL))
CONSOLES = re.findall(r"^```console\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with every file of the pages, which is the working directory."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_documented_pipeline_files_are_valid(directory: Path) -> None:
    """The pipeline files of the pages are valid, except the one with deliberate mistakes, and have the expected number
    of steps.
    """
    names = [name for name in FILES if name.endswith(".yaml") and name != "slips.yaml"]

    steps = {name: len(load(directory / name).steps) for name in [*names, "shop_py.py"]}

    assert steps == {"shop.yaml": 2, "ranked.yaml": 1, "trial.yaml": 2, "countries.yaml": 5, "shop_py.py": 2}


@pytest.mark.spark
@pytest.mark.parametrize("console", CONSOLES, ids=lambda text: text.splitlines()[0])
def test_commands_print_the_documented_output(directory: Path, console: str) -> None:
    """Each command prints the documented output."""
    command, _, expected = console.partition("\n")
    out = io.StringIO()

    with contextlib.redirect_stdout(out):
        main(shlex.split(command)[2:])

    assert command.startswith("$ limnos ")
    assert out.getvalue() == expected


def test_documented_functions_accept_a_minimal_dataframe(directory: Path) -> None:
    """The page's step function can be called without Spark, with a stand-in for the DataFrame and its arguments in the
    order of its signature.
    """

    class Frame:
        total = 7

        def where(self, condition: object) -> object:
            return condition

    spec = importlib.util.spec_from_file_location("shop_py", directory / "shop_py.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert module.ranked(Frame(), 5) is True
