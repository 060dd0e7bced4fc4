"""What a server has been asked so far, by operation, as its metrics tell.

Imports the standard library only.
"""

from __future__ import annotations

import re
import urllib.request
from collections import Counter

_COUNTED = re.compile(r"^limnos_requests_total\{(?P<labels>[^}]*)\} (?P<count>[0-9.e+]+)$", re.MULTILINE)
_OPERATION = re.compile(r'operation="([^"]*)"')


def asked(uri: str, token: str) -> Counter[str]:
    """Requests by operation, whatever came of them, but those for metrics. The difference of two is what was asked between."""
    request = urllib.request.Request(f"{uri}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    found: Counter[str] = Counter()
    for line in _COUNTED.finditer(text):
        operation = _OPERATION.search(line["labels"])
        found[operation[1] if operation else ""] += int(float(line["count"]))
    found.pop("metrics", None)
    return found
