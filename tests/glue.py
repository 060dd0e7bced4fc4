# SPDX-License-Identifier: Apache-2.0
"""Glue for tests: moto's server, which also compares the version of a table as AWS does.

moto accepts an update that names an old version of a table; here it is refused, so that a commit can lose.
"""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from moto.core.exceptions import JsonRESTError
from moto.glue.responses import GlueResponse
from moto.server import ThreadedMotoServer


class GlueServer(NamedTuple):
    """A running server, and the environment of its clients."""

    uri: str
    environment: dict[str, str]

    def reset(self) -> None:
        """Forget all databases."""
        urllib.request.urlopen(urllib.request.Request(f"{self.uri}/moto-api/reset", method="POST"), timeout=30).close()


@contextmanager
def glue_server() -> Iterator[GlueServer]:
    """Run Glue for the body of a `with`."""
    plain, turn = GlueResponse.update_table, threading.Lock()

    def update_table(self: GlueResponse) -> Any:  # noqa: ANN401 - an answer of moto
        with turn:
            version, name = self.parameters.get("VersionId"), self.parameters["TableInput"]["Name"]
            table = self.glue_backend.get_table(self.parameters["DatabaseName"], name)
            if version is not None and version != table.as_dict()["VersionId"]:
                raise JsonRESTError("ConcurrentModificationException", "the table has another version")
            return plain(self)

    server = ThreadedMotoServer(port=0, verbose=False)
    with patch.object(GlueResponse, "update_table", update_table):
        server.start()
        host, port = server.get_host_and_port()
        keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s3cret-of-aws", "AWS_DEFAULT_REGION": "us-east-1"}
        try:
            yield GlueServer(f"http://{host}:{port}", keys)
        finally:
            server.stop()
