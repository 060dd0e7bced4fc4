"""The drawing of a pipeline's graph."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from limnos.pipeline.demo.graph import Edge, columns, drawing

EDGES = [
    Edge("a.csv", "raw.a", 5),
    Edge("b<.csv", "raw.b", None),
    Edge("raw.a", "mart", 1234),
    Edge("raw.b", "mart", 7),
]


def test_names_stand_after_all_that_they_are_made_from() -> None:
    """A name's column is behind those of its sources, however many edges lie between."""
    edges = [Edge("a", "c", 1), Edge("a", "b", 1), Edge("b", "c", 1)]

    assert columns(edges) == [["a"], ["b"], ["c"]]
    assert columns([]) == []


def test_drawing_is_one_element_with_rows_on_its_edges() -> None:
    """Every name is there once, numbers are for people, texts are escaped."""
    root = ET.fromstring(drawing(EDGES, notes={"mart": "1 & 2"}))
    texts = [node.text for node in root.iter("text")]

    assert sorted(filter(None, texts)) == ["1 & 2", "1,234", "5", "7", "a.csv", "b<.csv", "mart", "raw.a", "raw.b"]
    assert sum(1 for _ in root.iter("path")) == len(EDGES)
