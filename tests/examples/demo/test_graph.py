# SPDX-License-Identifier: Apache-2.0
"""The drawing of a pipeline's graph."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from examples.demo.graph import DrawnEdge, columns, drawing

EDGES = [
    DrawnEdge("a.csv", "raw.a", 5),
    DrawnEdge("b<.csv", "raw.b", None),
    DrawnEdge("raw.a", "mart", 1234),
    DrawnEdge("raw.b", "mart", 7),
]


def test_nodes_are_placed_after_their_sources() -> None:
    """A name's column is after those of its sources, for any number of edges between them."""
    edges = [DrawnEdge("a", "c", 1), DrawnEdge("a", "b", 1), DrawnEdge("b", "c", 1)]

    assert columns(edges) == [["a"], ["b"], ["c"]]
    assert columns([]) == []


def test_drawing_shows_each_name_once_escaped() -> None:
    """Every name occurs once, numbers are formatted for people, texts are escaped."""
    root = ET.fromstring(drawing(EDGES, notes={"mart": "1 & 2"}))
    texts = [node.text for node in root.iter("text")]

    assert sorted(filter(None, texts)) == ["1 & 2", "1,234", "5", "7", "a.csv", "b<.csv", "mart", "raw.a", "raw.b"]
    assert sum(1 for _ in root.iter("path")) == len(EDGES)


def test_box_width_fits_longest_text() -> None:
    """The longest name and note determine the width of boxes; edges begin at the side of a box."""
    names = ["raw.a_name_that_is_much_longer_than_most_names_are", "raw.b"]
    note = "1,234,567 rows, 12 of them kept aside in another table, in 12.5 s"
    root = ET.fromstring(drawing([DrawnEdge(names[0], names[1], 5)], notes={"raw.b": note}))
    boxes = [(float(node.attrib["x"]), float(node.attrib["width"])) for node in root.iter("rect")]

    for text in (node for node in root.iter("text") if node.attrib.get("class") != "rows"):
        left = float(text.attrib["x"])
        size = 6.5 if text.attrib.get("class") == "note" else 8  # of a letter in browsers
        (box,) = [(x, width) for x, width in boxes if x <= left <= x + width]
        assert left + size * len(text.text or "") < box[0] + box[1]
    (path,) = root.iter("path")
    assert path.attrib["d"].startswith(f"M{boxes[0][0] + boxes[0][1]:.0f} ")
    assert float(root.attrib["viewBox"].split()[2]) >= boxes[1][0] + boxes[1][1]
