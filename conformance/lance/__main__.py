# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.lance [calls|differences|write]`: Lance's clients, and Lance's own server compared with this
one.

`calls`: every operation by every client at every depth, with access control on. `differences`: the same requests to
Lance's own server and to this one; `write` writes the page of differences. May import this package.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from conformance.lance import clients, differences, server, stories
from conformance.lance.operations import OPERATIONS
from conformance.lance.requests import REQUESTS
from conformance.lance.stories import Result
from limnos.model.errors import LimnosError

OUTPUT = Path(__file__).parents[2] / "conformance-out"
CLIENTS = (
    clients.Namespace.of,
    clients.GeneratedClient,
    clients.LanceDB.in_namespace_mode,
    clients.LanceDB.in_remote_mode,
)
SPACES, TABLES = range(1, 5), range(2, 6)


def main(parts: Sequence[str]) -> int:
    """Run and report; returns 0 if nothing failed."""
    known = {"calls": calls, "differences": differ, "write": write}
    unknown = [part for part in parts if part not in known]
    if unknown:
        sys.stderr.write(f"no part {unknown[0]}: there are {', '.join(known)}\n")
        return 2
    OUTPUT.mkdir(parents=True, exist_ok=True)
    return max([known[part]() for part in parts or ("calls", "differences")])


def calls() -> int:
    """Run every operation with every client."""
    with (
        tempfile.TemporaryDirectory(prefix="limnos-lance-") as folder,
        server.served(Path(folder), log=OUTPUT / "lance-server.log") as lake,
    ):
        results = called(lake)
    for each in results:
        print(each)
    print(totals(results))
    return 1 if any(each.outcome == "FAILED" for each in results) or missing(results) else 0


def differ() -> int:
    """Send the same requests to both servers; returns 1 for differences that are not on the page, or have no reason."""
    seen = _differences()
    wrong = [f"no reason: {each}" for each in differences.unreasoned(seen)] or differences.changes(
        differences.page(seen)
    )
    print("\n".join(wrong))
    print(
        f"{len(REQUESTS)} requests to both: {len(seen.differences)} answers differ, {len(wrong)} of them otherwise than"
        f" {differences.PAGE.name} says"
    )
    return 1 if wrong else 0


def write() -> int:
    """Write the page of differences, if each has a reason."""
    seen = _differences()
    wrong = differences.unreasoned(seen)
    for each in wrong:
        print(f"no reason: {each}")
    if not wrong:
        differences.PAGE.write_text(differences.page(seen), encoding="utf-8")
    return 1 if wrong else 0


def _differences() -> differences.ComparisonResult:
    with (
        tempfile.TemporaryDirectory(prefix="limnos-lance-") as folder,
        server.served(Path(folder), log=OUTPUT / "lance-differences-server.log") as lake,
    ):
        return differences.compare_servers(lake.uri, lake.admin)


def called(lake: server.Lake, *, spaces: range = SPACES, tables: range = TABLES) -> list[Result]:
    """Run each client's stories."""
    results: list[Result] = []
    for number, make in enumerate(CLIENTS):
        who, outsider = make(lake.lance, lake.worker), make(lake.lance, lake.outsider)
        remote = make == clients.LanceDB.in_remote_mode
        if remote and 1 in spaces:
            ours, theirs = (clients.LanceDB.of_databases(lake.lance, each) for each in (lake.worker, lake.outsider))
            results += stories.databases(ours, theirs, f"c{number}")
        results += stories.spaces(who, outsider, f"c{number}", depths=range(max(spaces.start, 1 + remote), spaces.stop))
        results += stories.tables(who, outsider, f"c{number}", depths=tables, flat=remote)
    return results


def missing(results: list[Result]) -> set[str]:
    """Operations that no client called."""
    return set(OPERATIONS) - {each.operation for each in results if each.outcome == "ok"}


def totals(results: list[Result]) -> str:
    """One line for each client, and one for all."""
    lines = []
    for client in dict.fromkeys(each.client for each in results):
        own = [each for each in results if each.client == client]
        reached = {each.operation for each in own if each.outcome == "ok"}
        lines.append(f"{client}: {len(reached)} of {len(OPERATIONS)} operations; {_counted(own)}")
    lines.append(f"all: {_counted(results)}; called by nobody: {', '.join(sorted(missing(results))) or 'none'}")
    return "\n".join(lines)


def _counted(results: list[Result]) -> str:
    counts = {word: sum(each.outcome == word for each in results) for word in ("ok", "FAILED", "no call")}
    call_count = sum(each.calls for each in results)
    return (
        f"{counts['ok']} ok, {counts['FAILED']} failed, {counts['no call']} not in the client; {call_count} answers"
        " looked at"
    )


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LimnosError as error:
        sys.exit(f"conformance: {error}")
