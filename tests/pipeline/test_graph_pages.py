# SPDX-License-Identifier: Apache-2.0
"""Pictures of pipelines with columns: rows and lines in SVG, and panels of a page that open without scripts."""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ET

from limnos.pipeline.declaration import Pipeline, Sql, StepDeclaration
from limnos.pipeline.drawing import LINES_MAX, ROWS_MAX, svg
from limnos.pipeline.drawn_graph import PipelineGraph, graph_of
from limnos.pipeline.engine.plan_columns import ColumnOrigin
from limnos.pipeline.graph_pages import NEIGHBOURS_MAX, PICTURES_MAX, html_graph, neighbourhood
from limnos.pipeline.reads import StepReads
from limnos.pipeline.table_lineage import PipelineColumns, ResolvedColumn, TableLineage

NAMESPACE = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "</text></svg><script>document.title='run'</script>\"'><img src=x onerror=\"document.title='run'\">&\x00\u202e"
)
A, B = ("main", "a", "a"), ("main", "a", "b")


def table_lineage(*columns: ResolvedColumn, rows: tuple[ColumnOrigin, ...] = ()) -> TableLineage:
    """Return the lineage of a table with these columns."""
    return TableLineage(columns=columns, rows=rows)


def graph_with(tables: dict[tuple[str, ...], TableLineage], edges: dict[str, tuple[str, ...]]) -> PipelineGraph:
    """Return a graph of steps in the namespace `a`, whose edges are the names that each step reads."""
    steps = tuple(StepDeclaration(table=table, body=Sql(text="SELECT 1")) for table in tables)
    reads = {
        step.name: StepReads(
            tables=frozenset(("main", "a", name) for name in edges.get(step.table[-1], ())),
            sources=frozenset(),
            parameters=frozenset(),
        )
        for step in steps
    }
    return graph_of(Pipeline(name="p", catalog="main", steps=steps), reads, columns=PipelineColumns(tables=tables))


def two_tables(name: str = "x", type_: str = "BIGINT") -> PipelineGraph:
    """Return a graph in which `a.b` has a column with the same value as one of `a.a`, and a computed one."""
    source = ColumnOrigin(A, name, "IDENTITY", True)
    tables = {
        A: table_lineage(ResolvedColumn(name, type_)),
        B: table_lineage(
            ResolvedColumn(name, type_, (source,)),
            ResolvedColumn("y", "DOUBLE", (source._replace(subtype="TRANSFORMATION"),)),
            ResolvedColumn("z", "INT", (source._replace(subtype="WINDOW", direct=False),)),
            rows=(source._replace(subtype="FILTER", direct=False),),
        ),
    }
    return graph_with(tables, {"b": ("a",)})


def lines_of(root: ET.Element) -> list[tuple[str, str]]:
    """Return the class and the text of each line between columns."""
    paths = root.findall(f"{NAMESPACE}path")
    return [
        (str(one.get("class")), title.text or "")
        for one in paths
        if (title := one.find(f"{NAMESPACE}title")) is not None
    ]


def test_svg_has_columns_types_and_lines_between_them() -> None:
    """Each column is a row with its type, and a line goes to it from each column of its origin, with its kind."""
    root = ET.fromstring(svg(two_tables()))

    texts = [(one.get("class"), one.text) for one in root.iter(f"{NAMESPACE}text")]
    assert texts.count(("column", "x")) == 2
    assert texts.count(("type", "bigint")) == 2
    assert lines_of(root) == [
        ("from same", "a.a: x → a.b: x (same)"),
        ("from computed", "a.a: x → a.b: y (computed)"),
        ("from depends", "a.a: x → a.b: z (window)"),
    ]


def test_lines_end_at_the_rows_of_their_columns() -> None:
    """A line begins at the right of its column's row, and ends at the left of the other's."""
    text = svg(two_tables())

    root = ET.fromstring(text)
    boxes = [(int(x), int(y)) for x, y in re.findall(r'<g class="step" transform="translate\((\d+) (\d+)\)"', text)]
    rows = {
        (number, row.text): boxes[number][1] + int(str(row.get("y")))
        for number, box in enumerate(root.findall(f"{NAMESPACE}g"))
        for row in box.iter(f"{NAMESPACE}text")
        if row.get("class") == "column"
    }
    paths = re.findall(r'<path class="from \w+" d="M(\d+) (\d+)C.*? (\d+) (\d+)">', text)
    for name, (left, start, right, end) in zip("xyz", paths, strict=True):
        assert (int(left), int(right)) == (boxes[0][0] + 300, boxes[1][0])
        assert abs(int(start) - rows[0, "x"]) <= 6
        assert abs(int(end) - rows[1, name]) <= 6


def test_wide_tables_say_how_many_columns_are_left_out() -> None:
    """Of 500 columns the first are drawn, the number of others is said, and lines of those end there."""
    columns = [ResolvedColumn(f"c{number}", "INT") for number in range(500)]
    last = ResolvedColumn("only", "INT", (ColumnOrigin(A, "c499", "IDENTITY", True),))
    graph = graph_with({A: table_lineage(*columns), B: table_lineage(last)}, {"b": ("a",)})

    root = ET.fromstring(svg(graph))

    texts = [one.text for one in root.iter(f"{NAMESPACE}text")]
    assert f"c{ROWS_MAX - 1}" in texts
    assert f"c{ROWS_MAX}" not in texts
    assert texts.count("and 480 more") == 1
    assert lines_of(root) == [("from same", "a.a: c499 → a.b: only (same)")]
    assert ">c499<" in html_graph(graph)


def test_unknown_columns_have_a_reason() -> None:
    """A table whose columns are not known says why, and has no row and no line."""
    tables = {A: TableLineage(unknown="the source has no 'schema'"), B: table_lineage(ResolvedColumn("x", "INT"))}
    graph = graph_with(tables, {"b": ("a",)})

    root = ET.fromstring(svg(graph))

    notes = [one for one in root.iter(f"{NAMESPACE}text") if one.get("class") == "note"]
    assert ["".join(one.itertext()) for one in notes] == [
        "the source has no 'schema'not known: the source has no 'schema'"
    ]
    assert lines_of(root) == []
    assert "Its columns are not known: the source has no &#x27;schema&#x27;." in html_graph(graph)


def test_hostile_columns_stay_text() -> None:
    """Names and types with markup, control characters and 300 letters add no element, no attribute and no script."""
    plain, hostile = two_tables("x", "INT"), two_tables(HOSTILE + "x" * 300, HOSTILE)

    drawn, text = ET.fromstring(svg(hostile)), html_graph(hostile)

    assert [one.tag for one in drawn.iter()] == [one.tag for one in ET.fromstring(svg(plain)).iter()]
    assert [sorted(one.attrib) for one in drawn.iter()] == [
        sorted(one.attrib) for one in ET.fromstring(svg(plain)).iter()
    ]
    assert re.findall(r"<([\w/]+)", text) == re.findall(r"<([\w/]+)", html_graph(plain))
    assert "\u202e" not in text
    assert "<script" not in text
    assert "default-src 'none'" in text


def test_each_box_links_to_its_panel() -> None:
    """The picture has no columns, each box is a link to a panel, and each link has its target in the page."""
    text = html_graph(two_tables())

    picture = text.split("</svg>")[0]
    ids = set(re.findall(r' id="([^"]+)"', text))
    assert re.findall(r'<a href="#(n\d)"><g', picture) == ["n0", "n1"]
    assert 'class="column"' not in picture
    assert set(re.findall(r'href="#([^"]*)"', text)) <= ids
    assert ids == {"n0", "n1", "picture"}


def test_panel_has_origins_uses_and_rows() -> None:
    """The table of a panel links each column to those it comes from and goes to, and says on what rows depend."""
    first, second = html_graph(two_tables()).split('<section class="panel"')[1:]

    assert '<a href="#n1">a.b: y</a> (computed)' in first
    assert '<td>y</td><td>double</td><td><a href="#n0">a.a: x</a> (computed)</td>' in second
    assert 'Its rows depend on <a href="#n0">a.a: x</a> (filter).' in second


def test_panel_has_the_columns_of_neighbours_that_matter() -> None:
    """Beside a node are its inputs with the columns that it uses, and its readers with those that come from it."""
    use = ColumnOrigin(A, "k", "IDENTITY", True)
    other = ColumnOrigin(B, "k", "IDENTITY", True)
    tables = {
        A: table_lineage(ResolvedColumn("k", "INT"), ResolvedColumn("unused", "INT")),
        B: table_lineage(ResolvedColumn("k", "INT", (use,)), ResolvedColumn("own", "INT")),
        ("main", "a", "c"): table_lineage(ResolvedColumn("k", "INT", (other,)), ResolvedColumn("more", "INT")),
        ("main", "a", "d"): table_lineage(ResolvedColumn("k", "INT")),
    }
    graph = graph_with(tables, {"b": ("a",), "c": ("b",), "d": ("c",)})

    near = neighbourhood(graph, B)

    columns_by_node = {
        node.name: ([one.name for one in node.lineage.columns], node.hidden) for node in near.nodes if node.lineage
    }
    assert columns_by_node == {"a.a": (["k"], 1), "a.b": (["k", "own"], 0), "a.c": (["k"], 1)}
    assert svg(near).count(">and 1 more<") == 2


def test_panel_of_a_hub_names_how_many_readers_it_leaves_out() -> None:
    """A table that many steps read has some of them in its picture, and says how many are not there."""
    tables = {A: table_lineage(ResolvedColumn("k", "INT"))}
    tables |= {("main", "a", f"r{number}"): table_lineage() for number in range(20)}
    graph = graph_with(tables, {f"r{number}": ("a",) for number in range(20)})

    panel = html_graph(graph).split('<section class="panel"')[1]

    assert len(neighbourhood(graph, A).nodes) == NEIGHBOURS_MAX + 1
    assert f"{20 - NEIGHBOURS_MAX} more that it reads, or that read it, are not in this picture." in panel


def test_thousand_steps_with_columns_are_drawn_within_limits() -> None:
    """A graph of 1,000 steps with 30 columns each is drawn in seconds: six rows in each box, no picture in panels."""
    tables = {}
    for number in range(1000):
        before = ("main", "a", f"t{number - 1}")
        origins = (lambda name, at=before: (ColumnOrigin(at, name, "IDENTITY", True),)) if number % 40 else None
        tables["main", "a", f"t{number}"] = table_lineage(
            *[ResolvedColumn(f"c{one}", "INT", origins(f"c{one}") if origins else ()) for one in range(30)]
        )
    edges = {f"t{number}": (f"t{number - 1}",) for number in range(1000) if number % 40}
    graph = graph_with(tables, edges)
    began = time.process_time()

    drawn, text = svg(graph), html_graph(graph)

    assert time.process_time() - began < 30
    assert drawn.count('class="column"') == 6000
    assert len(drawn) < 5_000_000
    assert len(text) < 12_000_000
    assert drawn.count('class="from ') <= LINES_MAX + 3
    assert f"A page of more than {PICTURES_MAX} boxes has no pictures of columns." in text
    ET.fromstring(drawn)
