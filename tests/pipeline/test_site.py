# SPDX-License-Identifier: Apache-2.0
"""Pages about a pipeline: their facts, file names, and the texts of users in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from limnos.client.activity.runs import Run, RunFindingInfo, RunStep
from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import DeclaredColumn, Expectation, Pipeline, RuleKind, Sql, StepDeclaration
from limnos.pipeline.engine.plan_columns import ColumnOrigin
from limnos.pipeline.lineage import LineageSource, QueryLineage, encode_lineage
from limnos.pipeline.reads import StepReads
from limnos.pipeline.site import SiteFacts, page_names, write_site

HOSTILE = "</td><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
ORDERS, SUMS = ("main", "raw", "orders"), ("main", "marts", "sums")


def _pipeline(text: str) -> Pipeline:
    rule = Expectation(name=f"rule {text}", kind=RuleKind.ROW, condition=f"x > 0 -- {text}")
    steps = (
        StepDeclaration(table=ORDERS, body=Sql(text=f"SELECT '{text}' AS x")),
        StepDeclaration(
            table=SUMS,
            body=Sql(text="SELECT x FROM raw.orders"),
            columns=(DeclaredColumn(name="x", comment=f"column {text}"),),
            comment=f"comment {text}",
            expectations=(rule,),
        ),
    )
    return Pipeline(name="p", catalog="main", steps=steps, comment=f"purpose {text}")


def _facts(text: str) -> SiteFacts:
    source = LineageSource("", "main.raw.orders", ORDERS)
    lineage = QueryLineage(inputs=(source,), columns={"x": (ColumnOrigin(source, f"x {text}", "IDENTITY", True),)})
    step = RunStep(name="marts.sums", state="done", rows=7, outputs=({"lineage": encode_lineage(lineage)},))
    finding = RunFindingInfo(
        step="marts.sums", rule=f"rule {text}", kind="row", action="warn", held=False, broken=1, checked=7
    )
    run = Run(
        id=f"id {text}",
        pipeline="p",
        state="published",
        attempt=1,
        user=f"user {text}",
        holder="h",
        message=f"message {text}",
        steps=(step,),
        findings=(finding,),
    )
    fields = [{"name": "x", "type": "long", "doc": f"doc {text}"}]
    metadata = {"schemas": [{"schema-id": 0, "fields": fields}], "current-schema-id": 0}
    return SiteFacts(metadata={SUMS: metadata}, runs=(run,))


def _written(directory: Path, text: str) -> dict[str, str]:
    reads = {
        "raw.orders": StepReads(tables=frozenset(), sources=frozenset(), parameters=frozenset()),
        "marts.sums": StepReads(tables=frozenset({ORDERS}), sources=frozenset(), parameters=frozenset()),
    }
    write_site(_pipeline(text), reads, facts=_facts(text), directory=directory)
    return {path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.html")}


def test_a_page_has_columns_lineage_expectations_and_runs(tmp_path: Path) -> None:
    """The page of a table has its facts, and links to the tables that it reads."""
    pages = _written(tmp_path / "site", "t")

    text = pages["table-marts-sums.html"]
    assert set(pages) == {"index.html", "table-raw-orders.html", "table-marts-sums.html"}
    for fact in ("comment t", "doc t", "long", "rule t", "x &gt; 0", "id t", ">7<", "SELECT x FROM raw.orders"):
        assert fact in text, fact
    assert '<a href="table-raw-orders.html">main.raw.orders: x t</a>' in text
    assert '<a href="table-marts-sums.html">main.marts.sums</a>' in pages["table-raw-orders.html"]
    assert "purpose t" in pages["index.html"]
    assert "message t" in pages["index.html"]


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    """Markup in any text of the file, the tables and the runs adds no element to any page."""
    plain, hostile = _written(tmp_path / "a", "t"), _written(tmp_path / "b", HOSTILE)

    assert [re.findall(r"<(\w+)", hostile[name]) for name in plain] == [
        re.findall(r"<(\w+)", text) for text in plain.values()
    ]
    assert all("alert(1)&lt;/script&gt;" in text for text in hostile.values())


def test_file_names_are_safe_and_distinct() -> None:
    """Names of tables cannot leave the directory, and no two share a file, also where case is ignored."""
    tables = [
        ("main", "..", "../../x"),
        ("main", "a", "T"),
        ("main", "a", "t"),
        ("main", "a-t"),
        ("main", "a--t--2"),
        ("main", "é" * 300),
    ]

    names = page_names(tables)

    assert len({name.lower() for name in names.values()}) == len(tables)
    assert all(re.fullmatch(r"table-[A-Za-z0-9_-]+\.html", name) for name in names.values())


def test_directories_with_other_files_are_refused(tmp_path: Path) -> None:
    """A directory with other files is left as it is; one with earlier pages is written again."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("mine")
    _written(tmp_path / "site", "t")

    again = _written(tmp_path / "site", "u")
    with pytest.raises(BadRequest, match="has other files"):
        _written(tmp_path / "mine", "t")

    assert "purpose u" in again["index.html"]
    assert (tmp_path / "mine" / "index.html").read_text() == "mine"
