# SPDX-License-Identifier: Apache-2.0
"""Drawings of pipelines: nodes, edges, and texts of users that must stay texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from limnos.client.activity.runs import Run, RunStep
from limnos.model.errors import BadRequest
from limnos.pipeline.declaration import Pipeline, Sql, StepDeclaration
from limnos.pipeline.drawing import NODES_MAX, svg
from limnos.pipeline.drawn_graph import PipelineGraph, describe_source, graph_of
from limnos.pipeline.graph_pages import html_graph
from limnos.pipeline.markup import escape
from limnos.pipeline.reads import StepReads
from limnos.pipeline.source_declarations import (
    DeclaredSource,
    Files,
    HarvestSource,
    Jdbc,
    PythonSource,
    RegistrationSource,
    StorageSource,
    Stream,
    SystemTableSource,
    TableSource,
)

NAMESPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;]]>\x00\u202e"


def _step(name: str, **further: object) -> StepDeclaration:
    return StepDeclaration(table=("main", "a", name), body=Sql(text="SELECT 1"), **further)  # type: ignore[arg-type]


def _reads(*tables: tuple[str, ...], sources: tuple[str, ...] = ()) -> StepReads:
    return StepReads(tables=frozenset(tables), sources=frozenset(sources), parameters=frozenset())


def _graph(name: str = "b") -> PipelineGraph:
    steps = (_step("a"), _step(name), _step("c", after=(("main", "a", "a"),)))
    sources = (
        DeclaredSource(name="files", kind=Files(path="data/*.csv", format="csv")),
        DeclaredSource(name="unused", kind=Files(path="x.csv", format="csv")),
        DeclaredSource(name="db", kind=Jdbc(url="jdbc:postgresql://ana:secret@host/d", table="t")),
    )
    pipeline = Pipeline(name="p", catalog="main", steps=steps, sources=sources)
    reads = {
        "a.a": _reads(sources=("files", "db")),
        f"a.{name}": _reads(("main", "a", "a"), ("other", "x", "y")),
        "a.c": _reads(),
    }
    return graph_of(pipeline, reads)


def test_graph_has_sources_tables_and_steps() -> None:
    """The nodes are the sources in use, tables that no step makes, and steps; edges go to what reads."""
    graph = _graph()

    assert [(node.name, node.kind) for node in graph.nodes] == [
        *[("files", "source"), ("db", "source"), ("x.y", "table")],
        *[("a.a", "step"), ("a.b", "step"), ("a.c", "step")],
    ]
    a, b, c = (("main", "a", name) for name in "abc")
    assert set(graph.edges) == {(("files",), a), (("db",), a), (a, b), (("other", "x", "y"), b), (a, c)}
    assert graph.after == {(a, c)}


def test_source_is_described_by_its_kind() -> None:
    """Every kind of source has a text of its own."""
    kinds = (
        Files(path="x.csv", format="csv"),
        TableSource(table=("main", "a", "t")),
        Jdbc(url="jdbc:x", table="t"),
        PythonSource(function="m:f"),
        SystemTableSource(table="owners"),
        StorageSource(),
        HarvestSource(root="/lake"),
        RegistrationSource(table=("h", "tables"), into=("main", "raw")),
        Stream(table=("main", "a", "t")),
    )

    assert [describe_source(each) for each in kinds] == [
        *("csv files x.csv", "table main.a.t", "database, t"),
        *("function m:f", "system table owners", "files in storage", "tables in /lake", "registration in main.raw"),
        "stream",
    ]


def test_svg_is_xml_with_a_node_and_a_line_each() -> None:
    """The drawing is well-formed, has a group for each node and a path for each edge, of which one is dashed."""
    root = ET.fromstring(svg(_graph()))

    lines = root.findall(f"{NAMESPACE}path")
    assert len(root.findall(f"{NAMESPACE}g")) == 6
    assert [line.get("class") for line in lines].count("line after") == 1
    assert len(lines) == 5


def test_steps_have_their_state_in_a_run() -> None:
    """Each step has its state and its rows; a step that the run lacks says so, and a state that is no word of ours
    is text alone.
    """
    steps = (_step("a"), _step("b"), _step("c"))
    run_steps = (RunStep(name="a.a", state="done", rows=1234), RunStep(name="a.b", state='x" onload="y'))
    run = Run(id="7", pipeline="p", state="failed", attempt=1, user="ana", holder="h", steps=run_steps)

    graph = graph_of(Pipeline(name="p", catalog="main", steps=steps), {}, run=run)

    assert [(node.state, node.place) for node in graph.nodes] == [
        *[("done", "done, 1,234 rows"), ("waiting", 'x" onload="y'), ("waiting", "not in this run")]
    ]
    groups = ET.fromstring(svg(graph)).findall(f"{NAMESPACE}g")
    assert [group.get("class") for group in groups] == ["step done", "step waiting", "step waiting"]
    assert graph.title == "Pipeline p, run 7: failed"


def test_addresses_of_databases_are_not_drawn() -> None:
    """The URL of a database, which may have a password, is in neither form of the drawing."""
    graph = _graph()

    assert "secret" not in svg(graph) + html_graph(graph)


def test_hostile_names_stay_text() -> None:
    """A name with markup, quotes, control characters and a change of direction adds no element and no attribute."""
    plain, hostile = _graph("b"), _graph(HOSTILE)

    drawn = ET.fromstring(svg(hostile))
    text = html_graph(hostile)

    assert [element.tag for element in drawn.iter()] == [element.tag for element in ET.fromstring(svg(plain)).iter()]
    assert re.findall(r"<(\w+)", text) == re.findall(r"<(\w+)", html_graph(plain))
    assert "\x00" not in text
    assert "\u202e" not in text
    assert "script-src" not in text
    assert "default-src &#x27;none&#x27;" not in text
    assert "default-src 'none'" in text


@pytest.mark.parametrize(
    "text,expected",
    [("<a b='c' d=\"e\">&", "&lt;a b=&#x27;c&#x27; d=&quot;e&quot;&gt;&amp;"), ("\ud800\x1b", "\ufffd\ufffd")],
)
def test_texts_are_escaped(text: str, expected: str) -> None:
    """Markup and both quotes are escaped; characters that a file cannot have are replaced."""
    assert escape(text) == expected


def test_large_graphs_are_listed_and_not_drawn() -> None:
    """More nodes than a drawing takes are refused as SVG, and a page has them as a list."""
    steps = tuple(_step(f"t{number}") for number in range(NODES_MAX + 1))
    graph = graph_of(Pipeline(name="p", catalog="main", steps=steps), {})

    with pytest.raises(BadRequest, match="1,001 nodes"):
        svg(graph)
    text = html_graph(graph)

    assert "<svg" not in text
    assert "a.t1000" in text
