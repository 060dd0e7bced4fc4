# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.asterixdb --suite DIR`: AsterixDB's own SQL++ suite against a query service.

DIR is a checkout of apache/asterixdb, which the user supplies. Starts a server with a temporary lake, sends the files
of each eligible case in order, and prints the counts of outcomes by group. `--ledger` writes them into
`docs/reference/sqlpp-conformance.md`, from the file of `--out`. Without `--suite` nothing is run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import random
import sys
import tempfile
import threading
from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.asterixdb.eligibility import ineligible_reason
from conformance.asterixdb.runner import NOT_ELIGIBLE, OUTCOMES, PASSED, CaseOutcome, run_case
from conformance.asterixdb.suite import Case, cases_of, root_of
from conformance.asterixdb.world import AsterixDb, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIMIT_S = 60.0


def main(arguments: list[str]) -> int:
    """Select cases, run them, report."""
    options = _options(arguments)
    if options.ledger:
        from conformance.asterixdb.ledger import write_ledger

        write_ledger(options.out)
        return 0
    if options.suite is None:
        print("nothing was run: give --suite DIR, a checkout of apache/asterixdb")
        return 0
    root = root_of(options.suite)
    all_cases = cases_of(root)
    outcomes, chosen = _choose(all_cases, options, root=root)
    print(f"{len(all_cases)} cases, {len(chosen) + len(outcomes)} chosen, {len(chosen)} to run", flush=True)
    earlier = {} if options.out is None or not options.resume else earlier_outcomes(options.out, again=options.again)
    done = [*outcomes, *earlier.values()]  # including cases that are not selected this time
    left = [case for case in chosen if case.key not in earlier]
    keeper = _Keeper(done, options.out)
    _run(left, options, root=root, keep=keeper.keep)
    _report(keeper.outcomes)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance.asterixdb", description=__doc__)
    parser.add_argument("--suite", type=Path, help="a checkout of apache/asterixdb")
    parser.add_argument(
        "--against",
        metavar="URI",
        help="send the cases to a running AsterixDB, such as http://127.0.0.1:19002, whose objects are dropped",
    )
    parser.add_argument("--group", action="append", default=[], help="only cases of these groups")
    parser.add_argument("--case", action="append", default=[], help="only cases whose path has this text")
    parser.add_argument("--sample", type=int, help="so many eligible cases, drawn over all groups")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="servers at once, each with an engine of its own")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that one statement may take")
    parser.add_argument("--out", type=Path, help="file for the outcomes, as JSON")
    parser.add_argument("--resume", action="store_true", help="leave out cases that the file has")
    parser.add_argument(
        "--again",
        action="append",
        default=[],
        choices=OUTCOMES,
        help="with --resume: run cases of these outcomes again",
    )
    parser.add_argument("--ledger", action="store_true", help="write the page of the outcomes in the file")
    options = parser.parse_args(arguments)
    if options.against is not None and options.jobs > 1:
        parser.error("--against has one server, which is emptied after each case: leave --jobs out")
    return options


def _choose(cases: list[Case], options: argparse.Namespace, *, root: Path) -> tuple[list[CaseOutcome], list[Case]]:
    """Return the outcomes of cases that are not eligible, and the cases to run, in the suite's order."""
    ineligible, eligible = [], []
    for case in cases:
        if options.group and case.group not in options.group:
            continue
        if options.case and not any(text in case.key for text in options.case):
            continue
        reason = ineligible_reason(case, root=root)
        if reason is None:
            eligible.append(case)
        else:
            ineligible.append(CaseOutcome(key=case.key, group=case.group, outcome=NOT_ELIGIBLE, reason=reason))
    if options.sample is not None and options.sample < len(eligible):
        drawn = {case.key for case in random.Random(options.seed).sample(eligible, options.sample)}
        eligible = [case for case in eligible if case.key in drawn]
    return ineligible, eligible


class _Keeper:
    """Collects outcomes, and writes each to the file."""

    def __init__(self, outcomes: list[CaseOutcome], file: Path | None) -> None:
        self.outcomes, self._file = outcomes, file
        self._lock = threading.Lock()

    def keep(self, outcome: CaseOutcome) -> None:
        """Add an outcome."""
        with self._lock:
            self.outcomes.append(outcome)
            print(
                f"{outcome.outcome:12} {outcome.key} {outcome.seconds:.1f} s {outcome.step} {outcome.reason[:150]}",
                flush=True,
            )
            if self._file is not None:
                self._file.write_text(json.dumps([asdict(each) for each in self.outcomes], indent=1))


def earlier_outcomes(file: Path, *, again: list[str]) -> dict[str, CaseOutcome]:
    """Return the outcomes in a file by case, without those to be repeated."""
    entries = json.loads(file.read_text()) if file.exists() else []
    return {each["key"]: CaseOutcome(**each) for each in entries if each["outcome"] not in (NOT_ELIGIBLE, *again)}


def _run(cases: list[Case], options: argparse.Namespace, *, root: Path, keep: Callable[[CaseOutcome], None]) -> None:
    """Run the cases on as many servers as there are jobs."""
    shares = [cases[at :: options.jobs] for at in range(options.jobs)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for each in [pool.submit(_run_share, share, options, root=root, keep=keep) for share in shares if share]:
            each.result()


def _run_share(
    cases: Iterable[Case], options: argparse.Namespace, *, root: Path, keep: Callable[[CaseOutcome], None]
) -> None:
    files = root / "asterix-app"
    with tempfile.TemporaryDirectory(prefix="limnos-asterixdb-", dir="/tmp") as name:
        work = Path(name)
        at = options.against
        with (
            served(work, roots=[files], limit_s=options.limit)
            if at is None
            else nullcontext(AsterixDb(at, limit_s=options.limit))
        ) as service:
            for case in cases:
                keep(run_case(case, service, root=files))
                service.empty()


def _report(outcomes: list[CaseOutcome]) -> None:
    """Print the counts by group and by reason."""
    groups: dict[str, Counter[str]] = {}
    for each in outcomes:
        groups.setdefault(each.group, Counter())[each.outcome] += 1
    print(f"{'group':40}" + "".join(f"{outcome:>14}" for outcome in OUTCOMES))
    for group, counts in sorted(groups.items()):
        print(f"{group:40}" + "".join(f"{counts[outcome]:14}" for outcome in OUTCOMES))
    total = Counter(each.outcome for each in outcomes)
    print(f"{'all':40}" + "".join(f"{total[outcome]:14}" for outcome in OUTCOMES))
    for reason, count in Counter(each.reason for each in outcomes if each.outcome == NOT_ELIGIBLE).most_common():
        print(f"not eligible, {reason}: {count}")
    ran = sum(total.values()) - total[NOT_ELIGIBLE]
    if ran:
        print(f"{total[PASSED]} of {ran} pass, {100 * total[PASSED] / ran:.1f} %")
    texts = sum(each.texts for each in outcomes)
    if texts:
        differences = Counter(text.partition(":")[0] for each in outcomes for text in each.text_differences)
        print(
            f"{texts - differences.total()} of {texts} results in ADM and CSV that are equal as values are equal byte"
            " for byte"
        )
        for difference, count in differences.most_common():
            print(f"not byte for byte, {difference}: {count}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
