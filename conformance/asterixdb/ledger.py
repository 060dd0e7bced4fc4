# SPDX-License-Identifier: Apache-2.0
"""Writes the outcomes of a run into `docs/reference/sqlpp-conformance.md`.

May import this package. It must not run a case.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.asterixdb.kinds import KINDS, kind_of
from conformance.asterixdb.runner import DIFFERS, NOT_ELIGIBLE, OTHER_ERROR, PASSED, REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE: Final = Path("docs/reference/sqlpp-conformance.md")
MARK: Final = "<!-- Below here: written by `conformance/run asterixdb --ledger`. -->"
_SHOWN: Final = (PASSED, DIFFERS, REFUSED, OTHER_ERROR)


def write_ledger(outcomes: Path, page: Path = PAGE) -> None:
    """Replace the tables of a page by those of a file of outcomes."""
    text = page.read_text(encoding="utf-8")
    head, separator, _ = text.partition(MARK)
    if not separator:
        raise ValueError(f"{page} has no line {MARK}")
    page.write_text(head + MARK + "\n\n" + ledger(json.loads(outcomes.read_text())), encoding="utf-8")


def ledger(outcomes: Iterable[dict[str, Any]]) -> str:
    """Return the tables of outcomes: by group, by kind of reason, why cases are not eligible, and differences of texts.

    An outcome is a `CaseOutcome` as a dictionary.
    """
    all_of = list(outcomes)
    ran = [each for each in all_of if each["outcome"] != NOT_ELIGIBLE]
    passed = sum(each["outcome"] == PASSED for each in ran)
    lines = [
        (
            f"{passed} of {len(ran)} cases that were sent pass ({100 * passed / max(1, len(ran)):.1f} %); "
            f"{len(all_of) - len(ran)} cases are not eligible."
        ),
        "",
        *_group_table(ran),
        "",
        "Why cases do not pass:",
        "",
        *_kind_table(ran),
        "",
        "Cases that are not eligible:",
        "",
        *_ineligible_table(all_of),
        "",
        *_text_table(ran),
    ]
    return "\n".join(lines) + "\n"


def _group_table(ran: list[dict[str, Any]]) -> list[str]:
    groups: dict[str, Counter[str]] = {}
    for each in ran:
        groups.setdefault(each["group"], Counter())[each["outcome"]] += 1
    total = Counter(each["outcome"] for each in ran)
    rows = [(group, groups[group]) for group in sorted(groups)] + [("**all**", total)]
    return [
        "| group | sent | passed | differs | refused | other error |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {counts.total()} | " + " | ".join(str(counts[each]) for each in _SHOWN) + " |"
            for name, counts in rows
        ),
    ]


def _kind_table(ran: list[dict[str, Any]]) -> list[str]:
    counts = Counter(kind_of(each["reason"], each["key"]).name for each in ran if each["outcome"] != PASSED)
    decisions = {kind.name: kind.decision for kind in KINDS}
    return [
        "| kind | cases | decision |",
        "|---|---|---|",
        *(f"| {name} | {count} | {decisions[name] or 'open'} |" for name, count in counts.most_common()),
    ]


def _ineligible_table(outcomes: list[dict[str, Any]]) -> list[str]:
    counts = Counter(each["reason"].partition(":")[0] for each in outcomes if each["outcome"] == NOT_ELIGIBLE)
    return ["| reason | cases |", "|---|---|", *(f"| {reason} | {count} |" for reason, count in counts.most_common())]


def _text_table(ran: list[dict[str, Any]]) -> list[str]:
    texts = sum(each.get("texts", 0) for each in ran)
    differences = Counter(text.partition(":")[0] for each in ran for text in each.get("text_differences", ()))
    return [
        (
            f"Of {texts} results in ADM and CSV that are equal as values, {texts - differences.total()} are equal byte "
            "for byte. The others differ in:"
        ),
        "",
        "| difference | results |",
        "|---|---|",
        *(f"| {difference} | {count} |" for difference, count in differences.most_common()),
    ]
