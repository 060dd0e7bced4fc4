"""`conformance/run lesser [--sample N] [--seed N] [--only TEXT]`: every use of an action asks for less, one at a time.

Each use of `Action.X` in `limnos.services` and `limnos.http` is lowered to an action of the same kind that a weaker right allows, and
the cells of the tables of refusals that come by it are asked again. A use that no cell notices is a survivor: the exit code is 1. Uses that are read when a
module is loaded are lowered in a process of their own (`--early`), which asks its protocol's whole tables. Actions for service admins alone have no lesser one.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lesser.sites import PLANT, Planter, Site, install

if TYPE_CHECKING:
    from conformance.lesser.tables import Table

HERE = Path(__file__).resolve().parents[2]
CHILD_S = 600


def main(arguments: list[str]) -> int:
    """Lower uses, and print what became of each; returns 1 when one survives."""
    parser = argparse.ArgumentParser(prog="conformance/run lesser", description=__doc__)
    parser.add_argument("--sample", type=int, help="so many uses, by chance")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", default="", help="uses whose line here holds this text")
    parser.add_argument("--early", action="store_true", help="those that are read when a module is loaded, too")
    chosen = parser.parse_args(arguments)
    planter = install(HERE / "src")
    some = [each for each in planter.found if chosen.only in str(each) and (chosen.early or not each.is_early)]
    if chosen.sample is not None:
        some = sorted(random.Random(chosen.seed).sample(some, min(chosen.sample, len(some))))
    with tempfile.TemporaryDirectory() as folder:
        return report(planter, some, folder=Path(folder))


def report(planter: Planter, some: list[Site], *, folder: Path) -> int:
    """Make the tables and lower each use."""
    from conformance.lesser.tables import TABLES, Table

    began = time.monotonic()
    tables = [Table(name, folder, planter) for name in TABLES]
    print(
        f"{sum(len(each.askings) for each in tables)} cells of {len(tables)} tables after {time.monotonic() - began:.0f} s",
        flush=True,
    )
    survivors: list[Site] = []
    unreached: list[Site] = []
    for site in some:
        told = early(site) if site.is_early else noticed(site, tables)
        if told is None:
            is_asked = site.is_early or any(site.number in each.reached for table in tables for each in table.askings)
            (survivors if is_asked else unreached).append(site)
            print(f"{'SURVIVED' if is_asked else 'not asked'} {site}", flush=True)
        else:
            print(f"noticed  {site}  by {told}", flush=True)
    print(
        f"{len(some)} uses lowered in {time.monotonic() - began:.0f} s: {len(some) - len(survivors) - len(unreached)} noticed, "
        f"{len(survivors)} survived, {len(unreached)} that no cell comes by"
    )
    return 1 if survivors else 0


def noticed(site: Site, tables: list[Table]) -> str | None:
    """Return the first cell that tells a lowered use, in words."""
    for table in tables:
        found = table.differs(site.number)
        if found is not None:
            return f"{table.name}: {found.row}, {found.who}"
    return None


def early(site: Site) -> str | None:
    """Lower a use from the start of a process that runs the tests of its protocol's tables."""
    parts = site.path.split("/")
    rooms = (
        (f"tests/http/{parts[2]}",)
        if parts[1] == "http"
        else ("tests/http/gravitino", "tests/http/iceberg", "tests/http/admin", "tests/http/lance")
    )
    names = ("test_refusals.py", "test_leaf_refusals.py")
    files = [f"{room}/{name}" for room in rooms for name in names if (HERE / room / name).exists()]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-p",
        "conformance.lesser.planted",
        *files,
    ]
    told = subprocess.run(
        command, cwd=HERE, env={**os.environ, PLANT: str(site.number)}, capture_output=True, text=True, check=False, timeout=CHILD_S
    )  # fmt: skip
    failed = [line for line in told.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:150] if failed else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
