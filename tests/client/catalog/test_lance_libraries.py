# SPDX-License-Identifier: Apache-2.0
"""Lance's libraries used by the client: their arguments, refusals before a call, and the error if they are not
installed.
"""

from __future__ import annotations

import asyncio
import sys

import pytest

from limnos.client import ArgumentError, AsyncClient, Client, DeniedError, NotFoundError, UnavailableError
from tests.client.fake import FakeServer

DESCRIBE = "/lance/v1/table/lance%24ml%24docs/describe?delimiter=%24&metalake=sea"
DOCS = "lance.ml.docs"


def test_lance_requests_carry_credential_and_metalake() -> None:
    """Requests of Lance's libraries carry the client's credential and metalake."""
    with Client("http://h:1/", token="lim_1_x", metalake="sea") as client, Client("http://h:1", user="ana") as ana:
        own_connection, theirs = client.lance._connection, ana.lance._connection

    assert own_connection.properties == {
        "uri": "http://h:1/lance",
        "header.Authorization": "Bearer lim_1_x",
        "header.x-limnos-metalake": "sea",
    }
    assert theirs.headers["Authorization"].startswith("Basic ")
    assert "lim_1_x" not in repr(own_connection)


def test_refused_open_raises_the_clients_own_error(fake: FakeServer) -> None:
    """Opening a dataset requests its description first, so refusals, and tables without data, raise the client's own
    errors.
    """
    fake.on("POST", DESCRIBE, {"error": "needs SELECT_TABLE", "code": 15}, status=403)
    fake.on("POST", DESCRIBE, {"location": "/w/docs"})

    with Client(fake.uri, metalake="sea") as client:
        with pytest.raises(DeniedError):
            client.lance.dataset(DOCS)
        with pytest.raises(NotFoundError, match=r"lance\.ml\.docs was declared, but has no data"):
            client.lance.dataset(DOCS)


def test_dataset_is_opened_at_a_version_or_tag(fake: FakeServer) -> None:
    """A dataset is opened at a version or at a tag, in both clients."""
    fake.on("POST", DESCRIBE, {"location": "/w/docs", "version": 3})

    async def both() -> None:
        async with AsyncClient(fake.uri, metalake="sea") as client:
            await client.lance.dataset(DOCS, version=3, tag="v")

    with Client(fake.uri, metalake="sea") as client, pytest.raises(ArgumentError, match="not both"):
        client.lance.dataset(DOCS, version=3, tag="v")
    with pytest.raises(ArgumentError, match="not both"):
        asyncio.run(both())


def test_a_remote_database_needs_a_credential() -> None:
    """LanceDB's remote clients do not connect anonymously, and the error names the missing credential."""
    with Client("http://h:1") as client, pytest.raises(ArgumentError, match="token or a user"):
        client.lance.remote("lance")


def test_a_missing_library_is_named(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Lance's libraries the other calls work, and the error names the package to install."""
    fake.on("POST", DESCRIBE, {"location": "/w/docs", "version": 3})
    for name in ("lance", "lancedb"):
        monkeypatch.setitem(sys.modules, name, None)

    with Client(fake.uri, metalake="sea") as client:
        assert client.lance.load(DOCS).version == 3
        with pytest.raises(ImportError, match=r"pip install -e '\.\[lance\]'"):
            client.lance.dataset(DOCS)
        with pytest.raises(ImportError, match="pip install lancedb"):
            client.lance.connect()


def test_description_is_retried_after_503_but_drop_is_not(fake: FakeServer) -> None:
    """After a 503 with Retry-After the client repeats the description of a table, which is a read, but not its drop."""
    busy = {"error": "The request was not complete within 30 s, and nothing was changed: try again", "code": 17}
    fake.on("POST", DESCRIBE, busy, status=503, headers=(("Retry-After", "0"),))
    fake.on("POST", DESCRIBE, {"location": "/w/docs", "version": 3})
    fake.on("POST", DESCRIBE.replace("describe", "drop"), busy, status=503, headers=(("Retry-After", "0"),))

    with Client(fake.uri, metalake="sea") as client:
        assert client.lance.load(DOCS).version == 3
        with pytest.raises(UnavailableError):
            client.lance.drop(DOCS)
    assert len(fake.asked) == 3
