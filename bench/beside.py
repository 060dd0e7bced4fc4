"""A load with company: another client sends at its own pace meanwhile, and what that costs by itself is taken off.

May import `load`. What the company costs by itself is taken from a run of it alone in the same round, on one connection and without
pauses: there, as beside the load, no two of its requests share a commit, and none pays for waking an idle server.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.load import Answered, Clock, Generator, Load

MARGIN_S = 0.1
"""The company goes on for so much longer than the load."""


def run_beside(
    generator: Generator, load: Load, clocks: Sequence[Clock], *, company: Generator, beside: Load
) -> tuple[Answered, tuple[int, ...]]:
    """Warm and measure a load with company; returns what came back and by how much each clock grew for it. Raises LoadError."""
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
