# SPDX-License-Identifier: Apache-2.0
"""The documents, rules and words that opening paragraphs cite exist."""

from __future__ import annotations

import re

from tests.house.one_pass import ROOT, Look

PROTOCOL = (ROOT / "docs" / "explain" / "consistency.md").read_text(encoding="utf-8")
CITED_RULE = re.compile(r"\brules? (\d{1,2})\b")
CITED_SEED = re.compile(r"\bseed (\d)\b")


def cited_rules(text: str) -> set[str]:
    """Return the numbers of the rules that a text cites."""
    return set(CITED_RULE.findall(text)) if "rule" in text else set()


def cited_seeds(text: str) -> set[str]:
    """Return the numbers of the documents that a text cites."""
    return set(CITED_SEED.findall(text)) if "seed " in text else set()


RULES = Look(lambda source: cited_rules(source.text), "src", "tests")
SEEDS = Look(lambda source: cited_seeds(source.text), "src", "tests")


def pages() -> list[str]:
    """Return the texts of the documentation."""
    return [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]


def test_every_cited_rule_exists_in_protocol() -> None:
    """`rule 6` in a comment is a line of docs/explain/consistency.md, and only these rules have bare numbers."""
    known = set(re.findall(r"^(\d+)\. ", PROTOCOL, flags=re.MULTILINE))
    cited = set[str]().union(*RULES.results.values(), *map(cited_rules, pages()))

    assert cited
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
    cited = set[str]().union(*SEEDS.results.values(), *map(cited_seeds, pages()))

    assert cited == known


def test_citations_are_detected() -> None:
    """Numbers of rules and documents are found in a comment."""
    assert cited_rules("x = 1  # rules 12 and rule 3") == {"12", "3"}
    assert cited_seeds("# seed 4, reseed 5") == {"4"}
