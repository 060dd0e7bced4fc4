# SPDX-License-Identifier: Apache-2.0
"""`conformance/run swaps [--seed TEXT] [--draw N] [--only NUMBERS] [--at PLACES]`: exchanges two neighbouring arguments
of one declared type, one place at a time. Which tests notice?

The places are calls of the product's own functions and constructors, `mypy` says which. A seed, by default the commit,
draws half of them among arguments by position and half among arguments by keyword. Each exchange is made in a copy of
the tree. The tests that mirror the module run first, then those that import it or mirror what imports it. A failed
test counts if it passes without the exchange. Types and rules of the house notice none of these exchanges: both
parameters have one type. Exit code 1 if one survives.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from conformance.swaps.places import Place, exchange, find_places
from conformance.swaps.selection import TestSelection
from conformance.swaps.trials import TrialTree

ROOT: Final = Path(__file__).resolve().parents[2]


def draw(places: Sequence[Place], count: int, *, seed: str, root: Path) -> list[Place]:
    """Draw places whose exchange changes something, half of them with arguments by position.

    A place keeps its rank when lines move or other places come and go, so that a mended product can be tried again.
    """
    drawn = []
    for is_keyword, number in ((False, (count + 1) // 2), (True, count // 2)):
        candidates = [each for each in places if each.is_keyword == is_keyword]
        candidates.sort(key=lambda place: sha256(f"{seed} {place.key}".encode()).digest())
        changing = (each for each in candidates if exchange((root / each.path).read_bytes(), each))
        drawn += [each for each, _ in zip(changing, range(number), strict=False)]
    return drawn


def main(words: Sequence[str]) -> int:
    """Draw, exchange, test and print; returns 1 if an exchange survives."""
    parser = argparse.ArgumentParser(prog="conformance/run swaps", description=__doc__)
    parser.add_argument("--seed", default="", help="what draws the places; the commit by default")
    parser.add_argument("--draw", type=int, default=20, help="how many places")
    parser.add_argument("--only", default="", help="numbers of drawn places, such as 3,7")
    parser.add_argument(
        "--at", default="", help="these places instead, such as src/limnos/a.py:7:0: the first pair of line 7"
    )
    parser.add_argument("--limit", type=float, default=420, help="seconds of tests for each place")
    parser.add_argument("--list", action="store_true", help="print the drawn places and run nothing")
    options = parser.parse_args(words)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    seed = options.seed or commit.strip()
    places = find_places(ROOT, "limnos")
    ways = Counter("by keyword" if each.is_keyword else "by position" for each in places)
    print(f"{len(places)} places: {dict(ways)}; seed {seed}", flush=True)
    chosen = [each for each in places if each.address in options.at.split(",")]
    drawn = draw(chosen or places, options.draw if not chosen else 2 * len(chosen), seed=seed, root=ROOT)
    numbers = {int(each) for each in options.only.split(",")} if options.only else {*range(1, len(drawn) + 1)}
    selection, counts = TestSelection(ROOT), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="limnos-swaps-") as folder:
        tree = None if options.list else TrialTree(Path(folder).resolve())
        for number, place in enumerate(drawn, start=1):
            if number not in numbers:
                continue
            print(f"{number:3} {describe(place)}", flush=True)
            if tree is not None:
                trial = tree.run(place, selection.stages(place.path), limit_s=options.limit)
                counts[trial.word] += 1
                print(
                    f"    {trial.word}: {trial.test or f'{trial.modules} test modules'}, {trial.seconds:.0f} s",
                    flush=True,
                )
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    return 1 if counts.keys() - {"caught"} else 0


def describe(place: Place) -> str:
    """Return a line about a place: where it is, which function it calls, and what is exchanged."""
    swap = exchange((ROOT / place.path).read_bytes(), place)
    assert swap is not None
    way = "keyword" if place.is_keyword else "position"
    return f"{place.address} {place.callee} by {way}, {place.type}: {swap.before} <-> {swap.after}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
