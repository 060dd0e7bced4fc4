# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.engines [FLAG…] [ENGINE…]`: unmodified engines against a running server.

Job: start a server and an object store, run each engine through the story, let every engine read the tables of all,
print the score. May import the client, the demo's server starter, the tests' object store and this package. Downloads
are cached in `limnos/conformance` of the XDG cache. `--page` writes the score into docs/guides/engines.md, and that of
restricted readers into docs/guides/restrictions.md, together with stored results of earlier runs. `--crossed` runs only
the tables that each engine writes and all read, `--restricted` only the checks of restricted readers, `--expired` only
reads before and after the end of a token.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from conformance.engines import restricted
from conformance.engines.page import PAGE
from conformance.engines.runner import DEEPER, ENGINES, Runner
from conformance.engines.scores import as_json, as_text, in_page, merged, totals
from conformance.engines.world import world
from limnos.model.errors import LimnosError

FLAGS = ("--page", "--crossed", "--restricted", "--expired")
RESTRICTIONS = PAGE.with_name("restrictions.md")
OUTPUT = Path(__file__).parents[2] / "conformance-out"


def main(names: Sequence[str]) -> int:
    """Run and report. Returns 0 if nothing failed."""
    flags, names = {name for name in names if name in FLAGS}, [name for name in names if name not in FLAGS]
    known = list(dict.fromkeys((*ENGINES, *DEEPER)))
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.stderr.write(f"no engine {unknown[0]}: there are {', '.join(known)}\n")
        return 2
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="limnos-engines-", dir="/tmp") as folder:
        work = Path(folder)
        with world(work, log=OUTPUT / "engines-server.log") as (lake, store):
            runner = Runner(lake, store, OUTPUT)
            runs = {
                "--crossed": runner.run_crossed,
                "--restricted": runner.run_restricted,
                "--expired": runner.run_expired,
            }
            run = next((run for flag, run in runs.items() if flag in flags), runner.run)
            run(list(names) or known)
    if "--page" in flags:
        _keep(runner, is_whole=not flags & set(FLAGS[1:]))
    print(as_text(runner.outcomes))
    print(totals(runner.outcomes, runner.titles))
    return 1 if any(each.result == "FAILED" for each in runner.outcomes) else 0


def _keep(runner: Runner, *, is_whole: bool) -> None:
    results_file = OUTPUT / "engines.json"
    before = results_file.read_text(encoding="utf-8") if results_file.exists() else as_json([], {})
    outcomes, titles = merged(before, runner.outcomes, runner.titles)
    results_file.write_text(as_json(outcomes, titles), encoding="utf-8")
    if is_whole:
        PAGE.write_text(in_page(PAGE.read_text(encoding="utf-8"), outcomes, titles), encoding="utf-8")
    if restricted_outcomes := [each for each in outcomes if each.check.startswith("a restricted reader ")]:
        page = restricted.in_page(RESTRICTIONS.read_text(encoding="utf-8"), restricted_outcomes, titles)
        RESTRICTIONS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LimnosError as error:
        sys.exit(f"conformance: {error}")
