# SPDX-License-Identifier: Apache-2.0
"""`pipeline graph` and `docs`: their files and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.cli.failures import ExitCode
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

TEXT = """
pipeline: p
catalog: main
environments: {dev: {prefix: dev_}}
sources: {x: data/*.csv}
steps: {a.t: {load: x}, a.u: {sql: SELECT * FROM a.t}}
"""


RUNS = "/api/limnos/v1/metalakes/lake/runs"
RUN = {"id": "r-1", "pipeline": "p", "state": "failed", "attempt": 1, "user": "ana", "holder": "host:7"}
STEPS = [{"name": "a.t", "state": "done", "rows": 1234}, {"name": "a.u", "state": "failed"}]


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A pipeline of two steps."""
    path = tmp_path / "p.yaml"
    path.write_text(TEXT)
    return str(path)


@pytest.mark.spark
@pytest.mark.parametrize("name,begins", [("g.svg", "<svg"), ("g.html", "<!doctype html>")])
def test_graph_is_written_in_the_form_of_its_name(run: Run, tmp_path: Path, file: str, name: str, begins: str) -> None:
    """The file has the form that its name says, and the names of an environment if one is chosen."""
    command_result = run("pipeline", "graph", file, "--out", str(tmp_path / name), "--env", "dev", "--output", "json")

    text = (tmp_path / name).read_text(encoding="utf-8")
    assert command_result.result == {"file": str(tmp_path / name), "nodes": 3, "edges": 2}
    assert text.startswith(begins)
    assert "dev_a.u" in text


@pytest.mark.spark
def test_graph_has_columns_on_request(run: Run, tmp_path: Path, file: str) -> None:
    """With `--with-columns` a box has its columns, with lines between them; without it has none."""
    text = Path(file).read_text(encoding="utf-8").replace("data/*.csv", "{files: x.csv, schema: 'id bigint'}")
    Path(file).write_text(text.replace("SELECT * FROM a.t", "'SELECT id, id + 1 AS following FROM a.t'"))
    out = tmp_path / "g.svg"

    plain = run("pipeline", "graph", file, "--out", str(out))
    without = out.read_text(encoding="utf-8")
    result = run("pipeline", "graph", file, "--out", str(out), "--with-columns", "--offline")

    assert (plain.code, result.code) == (ExitCode.OK, ExitCode.OK)
    assert 'class="column"' not in without
    text = out.read_text(encoding="utf-8")
    assert ">following</text>" in text
    assert "<title>a.t: id → a.u: following (computed)</title>" in text


@pytest.mark.spark
@pytest.mark.parametrize("typed", ["r-1", "last"])
def test_graph_has_states_of_a_run(fake: FakeServer, limnos: Run, tmp_path: Path, file: str, typed: str) -> None:
    """With `--run` each step has its state and its rows; `last` is the newest run of this pipeline."""
    fake.on("GET", f"{RUNS}?pipeline=p&limit=1", {"runs": [RUN], "next": None})
    fake.on("GET", f"{RUNS}/r-1", {**RUN, "steps": STEPS})

    limnos("pipeline", "graph", file, "--out", str(tmp_path / "g.svg"), "--run", typed)

    text = (tmp_path / "g.svg").read_text(encoding="utf-8")
    assert "Pipeline p, run r-1: failed" in text
    assert "done, 1,234 rows" in text
    assert 'class="step failed"' in text


@pytest.mark.spark
def test_run_of_another_pipeline_is_not_drawn(fake: FakeServer, limnos: Run, tmp_path: Path, file: str) -> None:
    """A run of another pipeline, and `last` without a run, are usage errors, and nothing is written."""
    fake.on("GET", f"{RUNS}/r-2", {**RUN, "id": "r-2", "pipeline": "q", "steps": []})
    fake.on("GET", f"{RUNS}?pipeline=p&limit=1", {"runs": [], "next": None})

    other = limnos("pipeline", "graph", file, "--out", str(tmp_path / "g.svg"), "--run", "r-2")
    none = limnos("pipeline", "graph", file, "--out", str(tmp_path / "g.svg"), "--run", "last")

    assert (other.code, none.code) == (ExitCode.USAGE, ExitCode.USAGE)
    assert "run r-2 is one of q, and the file is p" in other.err
    assert "there is no run of p" in none.err
    assert not (tmp_path / "g.svg").exists()


@pytest.mark.spark
def test_docs_are_written_without_a_server(run: Run, tmp_path: Path, file: str) -> None:
    """`docs --offline` writes a page for each table, and one for the pipeline."""
    command_result = run("pipeline", "docs", file, "--out", str(tmp_path / "site"), "--offline", "--output", "json")

    assert command_result.result == {"directory": str(tmp_path / "site"), "pages": 3}
    assert sorted(path.name for path in (tmp_path / "site").glob("*.html")) == [
        *("index.html", "table-a-t.html", "table-a-u.html")
    ]


@pytest.mark.parametrize("out,message", [("g.png", "ends in .svg or .html"), ("", "ends in .svg or .html")])
def test_other_forms_of_drawings_are_refused(run: Run, tmp_path: Path, file: str, out: str, message: str) -> None:
    """A name with another ending is a usage error."""
    command_result = run("pipeline", "graph", file, "--out", str(tmp_path / out))

    assert command_result.code == ExitCode.USAGE
    assert message in command_result.err


def test_files_with_mistakes_are_not_drawn(run: Run, tmp_path: Path) -> None:
    """A file with mistakes is refused with its problems."""
    (tmp_path / "w.yaml").write_text("pipeline: p\ncatalog: main\nsteps: {a.t: {sqll: SELECT 1}}\n")

    command_result = run("pipeline", "graph", str(tmp_path / "w.yaml"), "--out", str(tmp_path / "g.svg"))

    assert command_result.code == ExitCode.USAGE
    assert "unknown key 'sqll'" in command_result.err
    assert not (tmp_path / "g.svg").exists()
