"""`python -m conformance.tpch [--scale 1] [--days 2]`: TPC-H through the declared pipeline, day by day, against plain Spark SQL.

Starts a server of its own on SQLite. Prints a line per table and day; the exit code says whether all were equal.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from conformance.tpch.data import deliveries
from conformance.tpch.trial import Trial
from limnos.spark import session
from tests.integration.live import serving

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
    "spark.log.level": "ERROR",
}


def main() -> int:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--days", type=int, default=2)
    parser.add_argument("--directory", type=Path, help="where data is kept; a temporary one else")
    parser.add_argument("--memory", default="4g", help="of Spark, which is the driver and its two workers in one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = options.directory or Path(temporary)
        deliveries(place / "deliveries", scale=options.scale, days=options.days)
        with serving(place / "server", "--allow-root", str(place)) as server:
            spark = session(
                server.uri,
                token=server.token,
                master="local[2]",
                config=_SETTINGS | {"spark.driver.memory": options.memory},
            )
            try:
                return _days(Trial(place, spark), days=options.days)
            finally:
                spark.stop()


def _days(trial: Trial, *, days: int) -> int:
    wrong = 0
    for day in range(days + 1):
        trial.deliver(day)
        began = time.monotonic()
        trial.run()
        print(f"day {day}: published after {time.monotonic() - began:.1f} s")
        for line in trial.compare(day):
            wrong += not line.equal
            print(f"  {line}", flush=True)
    print("every table equals the plain computation" if not wrong else f"{wrong} tables differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
