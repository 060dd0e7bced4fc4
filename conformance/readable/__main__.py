# SPDX-License-Identifier: Apache-2.0
"""Every document that the server stores is parsed by the readers that clients have, and nothing else is refused.

`python -m conformance.readable [--documents N] [--seed S]`: random chains of all kinds of updates, valid ones and ones
that are slightly wrong, for tables of all format versions and for views. Each document that the server would store is
parsed by Iceberg's Java library in two releases, PyIceberg, iceberg-rust and iceberg-go. Each request that the server
refuses is given to the Java library: the document that it makes is parsed by all, too. Prints counts by kind of update,
and each difference that `ledger.toml` does not explain; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Final

from conformance.readable import ledger as ledgers
from conformance.readable.documents import Chains, RefusedRequest
from conformance.readable.readers import READ, Reader, Readers, readers
from limnos.formats.iceberg.metadata import encode

SHOWN_MAX = 20
TITLES: Final = ("stored", "refused", "taken by Java", "taken by all")
"""Columns of the table. The last two are refused requests of which Java makes a document, and all readers read it."""
_VALUES: Final = re.compile(r"'[^']*'|\"[^\"]*\"|-?\b[0-9][0-9a-f.-]*\b")


class Comparison:
    """Counts of what the readers say of stored documents, and of refused requests."""

    def __init__(self, all_readers: Readers, ledger: ledgers.Ledger) -> None:
        self.readers, self.ledger = all_readers, ledger
        self.stored: Counter[str] = Counter()
        self.read_by: Counter[str] = Counter()
        self.lacks: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        self.explained: Counter[str] = Counter()
        self.unexplained: Counter[str] = Counter()
        self.examples: dict[str, str] = {}

    def read(self, kind: str, document: str, *, update: str) -> None:
        """Let all readers parse a document that the server would store."""
        self.stored[update] += 1
        for reader in self.readers.all:
            answer, names = self._ask(reader, kind, document)
            if answer != READ:
                self._tell(f"{reader.name}: {answer[:300]}", f"{update}: {document}")
            elif names:
                self.lacks[", ".join(names)] += 1
            else:
                self.read_by[reader.name] += 1

    def refuse(self, request: RefusedRequest) -> None:
        """Let the Java library make a document of a request that the server refuses, and all readers parse it."""
        self.refused[request.update] += 1
        document = self.readers.make(request.parts) if request.parts else None
        if document is None:
            return
        self.made[request.update] += 1
        kind = request.parts[0].split()[1]
        if any(self._ask(reader, kind, document)[0] != READ for reader in self.readers.all):
            return
        self.taken[request.update] += 1
        if rule := self.ledger.refusal(request.message):
            self.explained[rule] += 1
        else:
            self._tell(f"all readers take what is refused with: {request.message[:300]}", json.dumps(request.parts))

    def _ask(self, reader: Reader, kind: str, document: str) -> tuple[str, list[str]]:
        """Return a reader's answer, and the rules of the ledger without which it would have been another one."""
        answer = reader.read(kind, document)
        if answer == READ:
            return READ, []
        known, names = self.ledger.known_to(reader.name, document)
        return (reader.read(kind, known), names) if names else (answer, [])

    def _tell(self, text: str, example: str) -> None:
        key = _VALUES.sub("…", text)
        self.unexplained[key] += 1
        self.examples.setdefault(key, f"{text}\n{example[:3000]}")

    def lines(self) -> list[str]:
        """Return the table of counts."""
        counters = (self.stored, self.refused, self.made, self.taken)
        updates = {name: [counter[name] for counter in counters] for name in sorted({*self.stored, *self.refused})}
        updates["all"] = [counter.total() for counter in counters]
        total = self.stored.total()
        lines = [f"{'update':32}" + "".join(f" {title:>18}" for title in TITLES)]
        lines += [f"{name:32}" + "".join(f" {count:18}" for count in counts) for name, counts in updates.items()]
        lines += ["", *(f"{r.name}: reads {self.read_by[r.name]} of {total} documents" for r in self.readers.all)]
        lines += ["", "Valid documents that a reader does not know:"]
        lines += [f"  {count:6}  {name}" for name, count in self.lacks.most_common()]
        lines += ["", "Refused, and taken by all readers:"]
        lines += [f"  {count:6}  {name}" for name, count in self.explained.most_common()]
        lines += ["", f"Without an explanation: {self.unexplained.total()}"]
        for key, count in self.unexplained.most_common(SHOWN_MAX):
            lines += ["", f"{count} × {self.examples[key]}"]
        return lines


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m conformance.readable")
    parser.add_argument("--documents", type=int, default=50_000, help="to parse")
    parser.add_argument("--seed", type=int, default=1, help="of the random chains")
    options = parser.parse_args()
    chains = Chains(options.seed)
    ledger = ledgers.load_ledger(ledgers.FILE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="limnos-readable-") as work, readers(Path(work)) as all_readers:
        comparison = Comparison(all_readers, ledger)
        for stored in islice(chains.documents(), options.documents):
            comparison.read(stored.kind, encode(stored.metadata).decode(), update=stored.update)
            for request in chains.take_refused():
                comparison.refuse(request)
    print("\n".join(comparison.lines()))
    return int(bool(comparison.unexplained))


if __name__ == "__main__":
    sys.exit(main())
