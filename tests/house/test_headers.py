# SPDX-License-Identifier: Apache-2.0
"""The import rules in each module's opening paragraph are true, and the documents that the code cites exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import limnos

PACKAGE = Path(limnos.__file__).parent
ROOT = PACKAGE.parents[1]
ROOMS = frozenset(path.name for path in PACKAGE.iterdir() if path.is_dir() and not path.name.startswith("_"))
MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if not path.name.endswith("_pb2.py")
    and path.name != "__init__.py"
    and path.parent.name not in ("migrations", "versions")
)
PROTOCOL = (ROOT / "docs" / "explain" / "consistency.md").read_text(encoding="utf-8")
CITED = re.compile(r"\brules? (\d{1,2})\b")


def rooms_named(header: str) -> frozenset[str]:
    """Return the rooms in the sentences about imports; "the layers below" and "every package" mean all."""
    text = " ".join(header.split())
    sentences = [each for each in re.split(r"(?<=[.;:]) ", text) if "import" in each]
    import_text = " ".join(sentences)
    if re.search(r"layers below|[Ee]very (?:package|layer)", import_text):
        return ROOMS
    return frozenset(name.split(".")[0] for name in re.findall(r"`(?:limnos\.)?([a-z_.]+)`", import_text))


def rooms_imported(module: Path) -> frozenset[str]:
    """Return the other rooms that a module imports, including imports for types."""
    own = module.relative_to(PACKAGE).parts[0]
    tree = ast.parse(module.read_text(encoding="utf-8"))
    rooms = set()
    for node in ast.walk(tree):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            parts = name.split(".")
            if parts[0] == "limnos" and len(parts) > 1 and parts[1] in ROOMS:
                rooms.add(parts[1])
    return frozenset(rooms - {own})


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_header_names_every_room_that_is_imported(module: Path) -> None:
    """The opening paragraph of a module names every room that the module imports."""
    header = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""

    assert "import" in header, "the opening paragraph says what the module may import"
    unnamed = rooms_imported(module) - rooms_named(header)
    assert not unnamed, f"{module.name}: the opening paragraph does not name {', '.join(sorted(unnamed))}: add it there"


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
