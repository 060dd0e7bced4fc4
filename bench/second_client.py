# SPDX-License-Identifier: Apache-2.0
"""A load with a second client that sends at its own rate; the second client's own cost is subtracted.

May import `load`. The second client's own cost is measured alone in the same round, on one connection and without
pauses. There, as during the load, none of its requests share a commit, and none has to wake an idle server.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.load import Clock, Generator, Load, LoadResult

MARGIN_S = 0.1
"""Seconds by which the second client outlasts the load."""


def run_beside(
    generator: Generator, load: Load, clocks: Sequence[Clock], *, company: Generator, beside: Load
) -> tuple[LoadResult, tuple[int, ...]]:
    """Warm up and measure a load together with a second client.

    Returns answers and clock increases of the load. Raises LoadError.
    """
    alone, alone_ns = company.run(replace(beside, per_second=None), clocks)
    generator.warm(load)
    company.warm(replace(beside, seconds=load.seconds + MARGIN_S))
    company.go()
    answered, run_ns = generator.run_warm(clocks)
    with_it = company.answered()
    sent = with_it.count / with_it.seconds * answered.seconds
    return answered, tuple(
        max(0, ran - int(sent * own / alone.count)) for ran, own in zip(run_ns, alone_ns, strict=True)
    )
