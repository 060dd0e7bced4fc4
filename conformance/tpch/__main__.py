# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.tpch [--scale 1] [--days 2]`: TPC-H through the declared pipeline, day by day, against plain
Spark SQL.

Starts its own server on SQLite. Prints a line per table and day, the duration of the run and of plain Spark computing
and writing the same tables completely, and the peak memory of Spark's process; the exit code is 0 if all were equal.
With `--directory`, data and plain tables' checksums are kept there, so that a second trial only runs the pipeline.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from conformance.tpch.data import deliveries
from conformance.tpch.result_cache import computed
from conformance.tpch.trial import Trial, running_spark
from tests.integration.live import serving


def main() -> int:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument("--directory", type=Path, help="where data is kept; a temporary one else")
    parser.add_argument("--memory", default="4g", help="of Spark, which is the driver and its two workers in one")
    options = parser.parse_args()
    if options.directory:
        options.directory.mkdir(parents=True, exist_ok=True)
    # Each trial starts with empty tables; generated and computed files are kept, on the same disk, because they are
    # linked.
    with tempfile.TemporaryDirectory(dir=options.directory) as temporary:
        trial = Path(temporary).resolve()
        data_folder = (options.directory or trial).resolve()
        deliveries(data_folder / "deliveries", scale=options.scale, days=options.days)
        with (
            serving(trial / "server", "--allow-root", str(trial)) as server,
            running_spark(server, scale=options.scale, memory=options.memory) as spark,
        ):
            return _days(
                Trial(trial, spark, deliveries=data_folder / "deliveries"),
                data_folder=data_folder,
                days=options.days,
            )


def _days(trial: Trial, *, data_folder: Path, days: int) -> int:
    wrong = 0
    for day in range(days + 1):
        trial.deliver(day)
        began = time.monotonic()
        trial.run()
        seconds, memory = time.monotonic() - began, _memory(trial)
        plain = computed(trial.spark, data_folder, days=day)
        print(
            f"day {day}: published after {seconds:.1f} s, plain Spark {plain.seconds:.1f} s"
            f" ({seconds / plain.seconds:.2f}), {memory}",
            flush=True,
        )
        for line in trial.compare(plain.tables):
            wrong += not line.equal
            print(f"  {line}", flush=True)
    print("every table equals the plain computation" if not wrong else f"{wrong} tables differ")
    return 1 if wrong else 0


def _memory(trial: Trial) -> str:
    """Return the peak memory of Spark's process, as Linux counts it."""
    number = trial.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    status = Path(f"/proc/{number}/status")
    if not status.exists():
        return "memory unknown"
    peak_line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return f"at most {int(peak_line.split()[1]) / 1024**2:.1f} GB"


if __name__ == "__main__":
    sys.exit(main())
