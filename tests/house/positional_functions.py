# SPDX-License-Identifier: Apache-2.0
"""Functions that took more than two positional arguments before the rule existed: a list that may only shrink.

`python -m tests.house.positional_functions` rewrites it without outdated entries; it adds nothing.
"""

from __future__ import annotations

from pathlib import Path

from tests.house import tidy

LIST = Path(__file__).parent / "by_position.txt"
ROOT = Path(__file__).parents[2]


def known() -> dict[str, int]:
    """Read the list: `module:name count` in each line."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {name: int(count) for name, count in (line.split() for line in lines)}


def main() -> None:
    """Write the remaining entries of the list."""
    counts: dict[str, int] = {}
    for source in tidy.read_sources(ROOT, "src"):
        counts |= tidy.by_position(source)
    left = {name: min(count, counts[name]) for name, count in known().items() if name in counts}
    LIST.write_text("".join(f"{name} {left[name]}\n" for name in sorted(left)), encoding="utf-8")


if __name__ == "__main__":
    main()
