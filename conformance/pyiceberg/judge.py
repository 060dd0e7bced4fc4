# SPDX-License-Identifier: Apache-2.0
"""The outcomes of a foreign suite beside a ledger of known failures: rules in TOML, each with a reason.

May import the standard library only. Must not know the suite: a test is named `group::name`.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping

OUTCOMES = ("passed", "known", "failed", "skipped", "other catalog")
Outcomes = Mapping[str, tuple[str, str]]
"""By test: its outcome, and the message of a failure."""


def judge(outcomes: Outcomes, ledger: str, *, is_whole: bool) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return the outcomes with known failures, and complaints about rules: without a reason, or, if the run is whole,
    without a failure.
    """
    rules = tomllib.loads(ledger)["difference"]
    used: Counter[str] = Counter()
    decisions = dict(outcomes)
    for test, (outcome, message) in outcomes.items():
        for rule in rules if outcome == "failed" else ():
            if re.search(rule["test"], test) and re.search(rule["message"], message):
                used[rule["name"]] += 1
                decisions[test] = ("known", rule["name"])
                break
    complaints = [f"the rule {rule['name']!r} has no reason" for rule in rules if not rule.get("reason")]
    if is_whole:
        complaints += [
            f"the rule {rule['name']!r} explains nothing"
            for rule in rules
            if not used[rule["name"]] and not rule.get("passes_at_times")
        ]
    return decisions, complaints


def lines(outcomes: Outcomes) -> list[str]:
    """Return the table of counts by module, the known differences and the failures."""
    modules: dict[str, Counter[str]] = {}
    for test, (outcome, _) in outcomes.items():
        modules.setdefault(test.partition("::")[0], Counter())[outcome] += 1
    totals: Counter[str] = Counter()
    for counts in modules.values():
        totals += counts
    table = [f"{'':60}" + "".join(f" {outcome:>13}" for outcome in OUTCOMES)]
    for module, counts in [*sorted(modules.items()), ("all", totals)]:
        table.append(f"{module:60}" + "".join(f" {counts[outcome]:13}" for outcome in OUTCOMES))
    known = Counter(message for outcome, message in outcomes.values() if outcome == "known")
    table += ["", *(f"known: {count} × {name}" for name, count in known.most_common())]
    failures = ((test, message) for test, (outcome, message) in outcomes.items() if outcome == "failed")
    return [*table, *(f"\nFAILED {test}\n{message[:600]}" for test, message in failures)]
