# SPDX-License-Identifier: Apache-2.0
"""Statements sent to a server's query service."""

from __future__ import annotations

import json
import urllib.error
import urllib.request


def answer_of(uri: str, token: str, statement: str) -> tuple[int, dict[str, object]]:
    """Send statements; returns the status and the body. Raises OSError if the server has ended."""
    request = urllib.request.Request(
        f"{uri}/query/service",
        data=json.dumps({"statement": statement}).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
