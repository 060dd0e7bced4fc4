# SPDX-License-Identifier: Apache-2.0
"""Output of the score: for people, for programs, and as tables of docs/guides/engines.md.

May import the story's words only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from conformance.engines.story import CLIENT, FAILED, OK, Outcome


def as_text(outcomes: Sequence[Outcome]) -> str:
    """Return one line for each check, with the message if it is not `ok`."""
    lines = []
    for each in outcomes:
        lines.append(f"{each.result:6} {each.engine}: {each.check}")
        if each.result != OK:
            lines.append(f"       {each.told}")
    return "\n".join(lines)


def as_json(outcomes: Sequence[Outcome], titles: dict[str, str]) -> str:
    """Return everything as JSON."""
    return json.dumps({"titles": titles, "outcomes": [asdict(each) for each in outcomes]}, indent=1) + "\n"


def totals(outcomes: Sequence[Outcome], titles: dict[str, str]) -> str:
    """Return a table of each engine's totals."""
    lines = ["| engine | checks | ok | the client's limit | failed |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(each.engine for each in outcomes):
        count = Counter(each.result for each in outcomes if each.engine == name)
        title = titles.get(name, name)
        lines.append(f"| {title} | {count.total()} | {count[OK]} | {count[CLIENT]} | {count[FAILED]} |")
    return "\n".join(lines)


BEGIN, END = "<!-- engines: begin -->", "<!-- engines: end -->"
"""Markers around the part that `--page` writes."""
_CELLS = {OK: "ok", CLIENT: "limit", FAILED: "**failed**"}


def table(outcomes: Sequence[Outcome], titles: dict[str, str]) -> str:
    """Return a table of common checks by engine. A cell is empty if the check was not run."""
    engines = list(dict.fromkeys(each.engine for each in outcomes))
    cells = {(each.check, each.engine): _CELLS[each.result] for each in outcomes}
    checks = [
        check
        for check in dict.fromkeys(each.check for each in outcomes)
        if not check.startswith(("deeper: ", "a restricted reader "))
    ]
    lines = [f"| | {' | '.join(titles.get(name, name) for name in engines)} |", "|---" * (len(engines) + 1) + "|"]
    lines += [f"| {check} | {' | '.join(cells.get((check, name), '') for name in engines)} |" for check in checks]
    return "\n".join(lines)


def in_page(page: str, outcomes: Sequence[Outcome], titles: dict[str, str]) -> str:
    """Replace the tables in the page by those of a run."""
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{totals(outcomes, titles)}\n\n{table(outcomes, titles)}\n\n{END}{after}"


def merged(text: str, outcomes: Sequence[Outcome], titles: dict[str, str]) -> tuple[list[Outcome], dict[str, str]]:
    """Merge a run with earlier results: of other engines, and of checks of the same versions that were not run now."""
    stored_results = json.loads(text)
    anew = {name for name, title in titles.items() if stored_results["titles"].get(name) != title}
    old = [Outcome(**each) for each in stored_results["outcomes"]]
    all_of = {(each.engine, each.check): each for each in old if each.engine not in anew}
    all_of.update({(each.engine, each.check): each for each in outcomes})
    return list(all_of.values()), {**stored_results["titles"], **titles}
