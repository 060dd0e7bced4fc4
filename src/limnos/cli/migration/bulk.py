# SPDX-License-Identifier: Apache-2.0
"""`bulk`: executes the items of a file, one JSON object a line, and prints the outcome of each that was not executed.

The file is read and sent in parts, so it may be of any size.
"""

from __future__ import annotations

import secrets
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.input_files import open_input, read_pieces
from limnos.cli.output import visible
from limnos.client.activity.bulk import (
    ATOMIC_MAX,
    ITEM_BYTES_MAX,
    BulkPart,
    cut_into_items,
    cut_into_parts,
    send_part,
)
from limnos.client.errors import ClientError

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.values import BulkOutcome


def bulk(
    file: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    job: str | None = None,
    after: int = 0,
    all_or_nothing: Annotated[bool, Parameter(negative="")] = False,
    all_outcomes: Annotated[bool, Parameter(negative="")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Execute the changes in a file, one JSON object a line: register tables, create namespaces, tag, grant and more.

    Parameters
    ----------
    file
        The file; - is standard input.
    job
        The name of the job. With the name of an interrupted job, what it has executed is not executed again.
    after
        Leave out the first items, as many as this number.
    all_or_nothing
        Execute all items, at most 1000 of one catalog, or none.
    all_outcomes
        Print the outcome of each item, not only of those that were refused or failed.
    """
    if after < 0 or (all_or_nothing and after):
        raise UsageError("--after is the number of items to leave out; an all-or-nothing job leaves out none")
    name = job or f"bulk-{secrets.token_hex(6)}"
    with open_input(file) as source, common.client() as client:
        items = cut_into_items(read_pieces(source))
        if all_or_nothing:
            counts = run_atomic(client, name, items=items)
        else:
            parts = cut_into_parts(items, after=after)
            counts = run_parts(client, name, parts=parts, prints_all=all_outcomes, hint=f"limnos bulk {file}")
    print(msgspec.json.encode({"job": name, **counts}).decode())
    if counts["refused"] or counts["failed"]:
        bad = counts["refused"] + counts["failed"]
        raise StoppedError(
            f"{bad} of {counts['items']} items were not executed: see the lines above",
            hint="correct them, and send those alone as a new job",
        )


def run_atomic(client: Client, job: str, *, items: Iterable[bytes]) -> Counter[str]:
    """Execute all items or none. Raises UsageError for too many, and the error of the first refused item."""
    lines: list[bytes] = []
    for line in items:
        lines.append(line)
        if len(lines) > ATOMIC_MAX or sum(map(len, lines[-1:])) > ITEM_BYTES_MAX:
            raise UsageError(f"an all-or-nothing job has at most {ATOMIC_MAX} items", hint="leave out --all-or-nothing")
    if not lines:
        return new_counts()
    outcomes = client.bulk.send(job, BulkPart(0, len(lines), b"\n".join(lines) + b"\n"), atomic=True)
    return new_counts() + count_of(outcomes)


def run_parts(
    client: Client, job: str, *, parts: Iterator[BulkPart], prints_all: bool = False, hint: str = "limnos bulk FILE"
) -> Counter[str]:
    """Send the parts one after the other, and print outcomes as JSON lines. Returns the counts of the outcomes.

    A part with items that failed for now is sent again. An interruption prints how to continue.
    """
    counts, done = new_counts(), 0
    try:
        for part in parts:
            done = part.after
            outcomes = send_part(client, job, part=part)
            for each in outcomes:
                if prints_all or each.outcome in ("refused", "failed"):
                    print(msgspec.json.encode(_without_defaults(each)).decode())
            sys.stdout.flush()
            counts.update(count_of(outcomes))
    except (ClientError, KeyboardInterrupt):
        note = f"the first {done} items are done: continue with '{hint} --job {job} --after {done}'"
        print(visible(note), file=sys.stderr)
        raise
    return counts


def new_counts() -> Counter[str]:
    """Return counts of zero for each outcome, and of the items."""
    return Counter(items=0, made=0, same=0, refused=0, failed=0)


def count_of(outcomes: Iterable[BulkOutcome]) -> Counter[str]:
    """Count outcomes."""
    counts = Counter([each.outcome for each in outcomes])
    counts["items"] = counts.total()
    return counts


def _without_defaults(outcome: BulkOutcome) -> dict[str, object]:
    fields = msgspec.structs.asdict(outcome)
    return {key: value for key, value in fields.items() if value or key == "index"}
