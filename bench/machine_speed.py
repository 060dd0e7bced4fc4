# SPDX-License-Identifier: Apache-2.0
"""How fast the machine is while something else is measured: the CPU time of a fixed computation, four times a second.

On a host that is shared with others, CPU time itself grows while they work: the same statement takes up to one and a
half times as much a minute later. Divided by the mean of these samples, CPU times of different minutes can be compared.

`python -m bench.machine_speed` prints a line for each sample: the clock of `time.monotonic`, and milliseconds of CPU.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

_PAUSE_S = 0.25
_STEPS = 150_000


class MachineSpeed:
    """Samples of one process that runs beside the measured work."""

    def __init__(self, samples: Path) -> None:
        """Read the samples that a process writes to a file."""
        self._samples = samples

    def mean_ms(self, start: float, end: float) -> float:
        """Return the mean CPU time of the computation between two moments of `time.monotonic`. Raises ValueError if
        there was no sample.
        """
        pairs = (line.split() for line in self._samples.read_text().splitlines())
        samples = [float(pair[1]) for pair in pairs if len(pair) == 2 and start <= float(pair[0]) <= end]
        if not samples:
            raise ValueError("The machine's speed was not sampled between these moments.")
        return fmean(samples)


@contextmanager
def machine_speed(directory: Path) -> Iterator[MachineSpeed]:
    """Sample the machine's speed while the body runs, into a file of `directory`."""
    path = directory / "machine-speed.txt"
    with path.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "bench.machine_speed"], stdout=output)
        try:
            yield MachineSpeed(path)
        finally:
            process.terminate()
            process.wait()


def sample_ms() -> float:
    """Return the milliseconds of CPU that the fixed computation takes now."""
    before, total = time.thread_time(), 0
    for number in range(_STEPS):
        total += number * number
    return (time.thread_time() - before) * 1000


def main() -> int:
    """Print samples until the process is ended."""
    while True:
        sys.stdout.write(f"{time.monotonic():.3f} {sample_ms():.3f}\n")
        sys.stdout.flush()
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    sys.exit(main())
