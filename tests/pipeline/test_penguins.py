# SPDX-License-Identifier: Apache-2.0
"""The example for newcomers: its README is executed literally, and its numbers equal those of pandas on the same
data.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

if TYPE_CHECKING:
    from limnos.client import Client
    from tests.integration.live import LiveServer

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

EXAMPLE = Path(__file__).parents[2] / "examples" / "penguins"
FENCES = re.findall(
    r"^```(\w+)\n(.*?)^```$", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
PRINTED = [text for kind, text in FENCES if kind == "text"]
BEGIN, END = "<<<<", ">>>>"
"""Markers around the output of the page's Python."""


def script() -> str:
    """Return the page as one script: its commands in order, and its Python where the page shows the output."""
    parts, python = ["set -e"], ""
    for kind, text in FENCES:
        if kind == "python":
            python = text.replace("http://127.0.0.1:8090", "$LIMNOS_URI")
        elif kind == "text":
            parts.append(f"echo '{BEGIN}'\npython - <<PYTHON\n{python}\nPYTHON\necho '{END}'")
        else:
            assert kind == "sh", kind
            parts.append(text)
    return "\n".join(parts)


def by_pandas(last_year: int) -> str:
    """Return the expected table of the page after the years up to one, computed with pandas."""
    birds = pd.read_csv(str(distribution("palmerpenguins").locate_file("palmerpenguins/data/penguins.csv")))
    birds = birds[birds["year"] <= last_year]
    is_measured = birds["body_mass_g"].notna() & birds["bill_length_mm"].notna()
    lines = [f"raw.penguins.measured {is_measured.sum()}", f"raw.penguins.measured__quarantine {(~is_measured).sum()}"]
    for species, rows in birds[is_measured].groupby("species"):
        lines.append(f"{species} {len(rows)} {rows['year'].max()} {int(rows['body_mass_g'].mean())}")
    return "\n".join(lines) + "\n"


def test_documented_counts_and_means_equal_the_data() -> None:
    """The counts and means on the page equal those of the data."""
    assert [by_pandas(2008), by_pandas(2009)] == PRINTED


def test_documented_commands_print_documented_output(server: LiveServer, admin: Client, tmp_path: Path) -> None:
    """Check, plan, run, a kill and a resume print the documented output, and the second run reads only the new file."""
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "penguins", ignore=shutil.ignore_patterns("data"))
    (tmp_path / "limnos-data").mkdir()
    (tmp_path / "limnos-data" / "admin.token").write_text(server.token)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    done = subprocess.run(
        ["bash", "-c", script()],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "LIMNOS_URI": server.uri},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert re.findall(f"{BEGIN}\n(.*?){END}", done.stdout, re.DOTALL) == PRINTED
    resumed, first = admin.runs.list(pipeline="penguins")
    rows = [
        step.rows
        for run in (first, resumed)
        for step in admin.runs.load(run.id).steps
        if step.name == "raw.penguins.measured"
    ]
    assert rows == [223, 119]
    assert (first.attempt, resumed.attempt) == (1, 2)
    weight = admin.lineage.up("main.marts.penguins.by_species", column="body_mass_g", depth=3)
    assert {(node.kind, node.column) for node in weight.nodes} == {
        ("table", "body_mass_g"),
        ("table", "species"),  # the grouping key
        ("outside", "body_mass_g"),
    }
