# SPDX-License-Identifier: Apache-2.0
"""Commands of `limnos access`, run in this process against a server."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from limnos.cli.main import main
from limnos.client import Client


class CommandFailed(Exception):
    """Raised if a command fails."""


class Commands:
    """Runs commands as the server's administrator."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.client = Client(uri, user="admin", metalake="lake")

    def close(self) -> None:
        """Close the client's connections."""
        self.client.close()

    def run(self, *words: str) -> Any:  # noqa: ANN401 - the document that the command prints
        """Run a command, and return the JSON document that it prints. Raises CommandFailed."""
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            code = main([*words, "--uri", self.uri, "--user", "admin", "--output", "json"])
        if code != 0:
            raise CommandFailed(f"limnos {' '.join(words)}: exit code {code}: {errors.getvalue()[:500]}")
        return json.loads(out.getvalue())
