# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.openapi [PROTOCOL…] [--cases N] [--seed N]`: generated requests as five callers; totals are
printed.

Fails on an answer of 500 and above, and on an undocumented one. May import this package.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.openapi.asking import PROTOCOLS, ProtocolResults, ask_all, operations
from conformance.openapi.world import CALLERS, world_at

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str]) -> int:
    """Send requests and report; returns 0 if each answer was documented."""
    parser = argparse.ArgumentParser(prog="python -m conformance.openapi")
    parser.add_argument("protocols", nargs="*", default=PROTOCOLS, metavar="PROTOCOL", help=" ".join(PROTOCOLS))
    parser.add_argument("--cases", type=int, default=20, help="of every operation, as each caller")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="operations whose method and path contain this")
    options = parser.parse_args(words)
    if unknown := set(options.protocols) - set(PROTOCOLS):
        parser.error(f"no document of {', '.join(unknown)}")
    wrong = 0
    for protocol in options.protocols:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="limnos-openapi-") as folder, world_at(Path(folder)) as world:
            chosen = [each for each in operations(protocol) if options.only in each.label]
            results = ask_all(world, chosen, callers=CALLERS, cases=options.cases, number=options.seed)
        print("\n\n".join(map(str, results.wrong.values())))
        print(totals(protocol, results, time.monotonic() - began), flush=True)
        wrong += len(results.wrong)
    return 1 if wrong else 0


def totals(protocol: str, results: ProtocolResults, seconds: float) -> str:
    """Return a line for the protocol, and one for each caller, with the counts of statuses."""
    lines = [f"{protocol}: {results.cases} requests in {seconds:.0f} s, {len(results.wrong)} wrong"]
    for caller in CALLERS:
        statuses = sorted((status, count) for (who, status), count in results.statuses.items() if who == caller.name)
        lines.append(f"  {caller.name}: " + ", ".join(f"{status} × {count}" for status, count in statuses))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
