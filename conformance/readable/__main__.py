"""Every document that the server stores is parsed by the readers that clients have.

`python -m conformance.readable [--documents N] [--seed S]`: random chains of all kinds of updates, valid ones and ones
that are slightly wrong, for tables of all format versions and for views. Each document that the server would store is
parsed by Iceberg's Java library in two releases and by PyIceberg. Prints counts by kind of update, and each error of a
reader once; the exit code is 1 if there is one. Types of format version 3 that PyIceberg lacks are not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path

from conformance.readable.documents import Chains
from conformance.readable.readers import READ, readers
from limnos.formats.iceberg.metadata import encode

SHOWN_MAX = 20


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m conformance.readable")
    parser.add_argument("--documents", type=int, default=50_000, help="to parse")
    parser.add_argument("--seed", type=int, default=1, help="of the random chains")
    options = parser.parse_args()
    chains = Chains(options.seed)
    parsed: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    examples: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="limnos-readable-") as work, readers(Path(work)) as all_readers:
        for stored in islice(chains.documents(), options.documents):
            document = encode(stored.metadata).decode()
            parsed[stored.update] += 1
            for reader in all_readers:
                answer = reader.read(stored.kind, document)
                if answer != READ:
                    refused[reader.name] += 1
                    examples.setdefault(f"{reader.name}, {stored.update}: {answer[:160]}", document)
        names = [reader.name for reader in all_readers]
    for update in sorted({*parsed, *chains.refused}):
        print(f"{update:32} {parsed[update]:6} documents, {chains.refused.get(update, 0):6} refused requests")
    for name in names:
        print(f"{name}: {refused[name]} of {parsed.total()} documents cannot be read")
    for message, document in islice(examples.items(), SHOWN_MAX):
        print(f"\n{message}\n{document[:3000]}")
    return int(bool(refused.total()))


if __name__ == "__main__":
    sys.exit(main())
