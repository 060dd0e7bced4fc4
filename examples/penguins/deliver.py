# SPDX-License-Identifier: Apache-2.0
"""Write the measurements of some years into the pipeline's input directory: `python deliver.py 2007 2008`.

The data is that of the package `palmerpenguins` (Gorman, Williams and Fraser 2014, collected at Palmer Station; CC0):
`pip install palmerpenguins`.
"""

from __future__ import annotations

import csv
import sys
from importlib.metadata import distribution
from pathlib import Path

ALL = Path(str(distribution("palmerpenguins").locate_file("palmerpenguins/data/penguins.csv")))
DATA = Path(__file__).parent / "data"


def deliver(year: str) -> int:
    """Write the file of a year; returns its number of penguins."""
    with ALL.open(newline="", encoding="utf-8") as opened:
        rows = [row for row in csv.DictReader(opened) if row["year"] == year]
    if not rows:
        raise SystemExit(f"there are no penguins of {year}: say 2007, 2008 or 2009")
    DATA.mkdir(exist_ok=True)
    target = DATA / f"{year}.csv"
    beside = target.with_suffix(".part")
    with beside.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    beside.replace(target)  # a concurrent run sees the complete file or none
    return len(rows)


for each in sys.argv[1:]:
    print(f"data/{each}.csv: {deliver(each)} penguins")
