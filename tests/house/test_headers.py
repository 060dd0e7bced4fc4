# SPDX-License-Identifier: Apache-2.0
"""The documents, rules and words that opening paragraphs cite exist."""

from __future__ import annotations

import re
from pathlib import Path

import limnos

PACKAGE = Path(limnos.__file__).parent
ROOT = PACKAGE.parents[1]
MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if not path.name.endswith("_pb2.py")
    and path.name != "__init__.py"
    and path.parent.name not in ("migrations", "versions")
)
PROTOCOL = (ROOT / "docs" / "explain" / "consistency.md").read_text(encoding="utf-8")
CITED = re.compile(r"\brules? (\d{1,2})\b")


def test_every_cited_rule_exists_in_protocol() -> None:
    """`rule 6` in a comment is a line of docs/explain/consistency.md, and only these rules have bare numbers."""
    known = set(re.findall(r"^(\d+)\. ", PROTOCOL, flags=re.MULTILINE))
    files = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    cited = {number for path in files for number in CITED.findall(path.read_text(encoding="utf-8"))}

    assert cited <= known


def test_every_protocol_word_has_an_example() -> None:
    """Each word of the protocol is explained there, with an example."""
    words = ("request view", "cache miss", "ancestors", "zone", "permit", "batch", "freshness gate")
    explanations = dict(re.findall(r"^### ([\w ]+)\n+(.+?)(?=\n##|\Z)", PROTOCOL, flags=re.MULTILINE | re.DOTALL))

    assert set(words) <= set(explanations)
    assert [word for word in words if "Example:" not in explanations[word]] == []


def test_every_cited_document_is_listed() -> None:
    """`seed 3` in a comment is a row of docs/explain/design-documents.md."""
    known = set(
        re.findall(
            r"^\| seed (\d)",
            (ROOT / "docs" / "explain" / "design-documents.md").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    files = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    cited = {number for path in files for number in re.findall(r"\bseed (\d)\b", path.read_text(encoding="utf-8"))}

    assert cited == known
