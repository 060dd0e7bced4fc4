# SPDX-License-Identifier: Apache-2.0
"""Request counts of a server by operation, from its metrics.

Imports the standard library only.
"""

from __future__ import annotations

import re
import urllib.request
from collections import Counter

_COUNTED = re.compile(r"^limnos_requests_total\{(?P<labels>[^}]*)\} (?P<count>[0-9.e+]+)$", re.MULTILINE)
_OPERATION = re.compile(r'operation="([^"]*)"')


def count_requests(uri: str, token: str) -> Counter[str]:
    """Return requests by operation, with any outcome, except those for metrics.

    Subtract two results for an interval.
    """
    request = urllib.request.Request(f"{uri}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    counts: Counter[str] = Counter()
    for line in _COUNTED.finditer(text):
        operation = _OPERATION.search(line["labels"])
        counts[operation[1] if operation else ""] += int(float(line["count"]))
    counts.pop("metrics", None)
    return counts
