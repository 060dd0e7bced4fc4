# SPDX-License-Identifier: Apache-2.0
"""Programs authenticate by their own `credential` setting and a service account's secret: PyIceberg in both of its
ways, DuckDB. A token and the secret are revoked while they run.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import OAuthError, UnauthorizedError

from limnos.client import Client
from limnos.client.values import NewSecret
from tests.integration.duckdb_client import attached
from tests.integration.live import LiveServer, serving

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that accepts only tokens, and a service account `etl` that owns the catalog."""
    folder = tmp_path_factory.mktemp("credentials")
    with serving(folder / "data", authentication="token") as running:
        with Client(running.uri, token=running.token) as admin:
            admin.users.add("etl")
            admin.owners.set("main", "etl", kind="catalog")
        yield running


@pytest.fixture
def admin(lake: LiveServer) -> Iterator[Client]:
    """The administrator's client; the service account has no secret before and after a test."""
    with Client(lake.uri, token=lake.token) as client:
        yield client
        for secret in client.service_accounts.list_secrets("etl"):
            client.service_accounts.end_secret("etl", secret.id)


def pyiceberg(lake: LiveServer, **properties: object) -> RestCatalog:
    """Return PyIceberg with a user's configuration."""
    settings = {"type": "rest", "uri": f"{lake.uri}/iceberg", "warehouse": "main", **properties}
    catalog = load_catalog("lake", **settings)  # type: ignore[arg-type]
    assert isinstance(catalog, RestCatalog)
    return catalog


def by_credential(lake: LiveServer, secret: NewSecret) -> dict[str, object]:
    """Return the properties `credential` and `oauth2-server-uri`."""
    return {
        "credential": f"{secret.client_id}:{secret.client_secret}",
        "oauth2-server-uri": f"{lake.uri}/iceberg/v1/oauth/tokens",
    }


def by_manager(lake: LiveServer, secret: NewSecret) -> dict[str, object]:
    """Return the property `auth`, whose manager sends id and secret in a header."""
    oauth2_settings = {
        "client_id": secret.client_id,
        "client_secret": secret.client_secret,
        "token_url": f"{lake.uri}/iceberg/v1/oauth/tokens",
    }
    return {"auth": {"type": "oauth2", "oauth2": oauth2_settings}}


@pytest.mark.parametrize("way", [by_credential, by_manager])
def test_pyiceberg_writes_and_reads(lake: LiveServer, admin: Client, way) -> None:  # noqa: ANN001
    """PyIceberg writes and reads with its own settings alone; a wrong secret is an authentication error."""
    secret = admin.service_accounts.create_secret("etl")
    catalog = pyiceberg(lake, **way(lake, secret))
    namespace = way.__name__

    catalog.create_namespace(namespace)
    table = catalog.create_table(f"{namespace}.t", ROWS.schema)
    table.append(ROWS)

    assert catalog.load_table(f"{namespace}.t").scan().to_arrow() == ROWS
    wrong = NewSecret(id=0, client_id="etl", client_secret=f"{secret.client_secret}x")
    with pytest.raises((OAuthError, OSError)):
        pyiceberg(lake, **way(lake, wrong)).list_namespaces()


def test_pyiceberg_renews_a_revoked_token(lake: LiveServer, admin: Client) -> None:
    """After its token is revoked, PyIceberg requests the next one. After its secret is revoked it is refused, and a
    program with the new secret works.
    """
    old = admin.service_accounts.create_secret("etl")
    catalog = pyiceberg(lake, **by_credential(lake, old))
    token = catalog._session.auth.auth_manager.auth_header().split()[1]  # type: ignore[union-attr]
    with Client(lake.uri, token=token) as own:
        own.tokens.revoke(token.split("_")[1])
        assert catalog.list_namespaces() is not None

        new = admin.service_accounts.create_secret("etl")
        following = pyiceberg(lake, **by_credential(lake, new))
        admin.service_accounts.end_secret("etl", old.id)
        with pytest.raises((OAuthError, UnauthorizedError)):
            catalog.list_namespaces()

    assert following.list_namespaces() is not None


def test_duckdb_writes_and_reads(lake: LiveServer, admin: Client) -> None:
    """DuckDB writes and reads with CLIENT_ID, CLIENT_SECRET and OAUTH2_SERVER_URI; with a wrong secret ATTACH fails."""
    created_secret = admin.service_accounts.create_secret("etl")

    def secret(text: str) -> str:
        return (
            f"TYPE iceberg, CLIENT_ID 'etl', CLIENT_SECRET '{text}', OAUTH2_SERVER_URI"
            f" '{lake.uri}/iceberg/v1/oauth/tokens'"
        )

    with attached(lake, secret=secret(created_secret.client_secret)) as duck:
        duck.execute("CREATE SCHEMA lake.duck")
        duck.execute("CREATE TABLE lake.duck.t (id BIGINT)")
        duck.execute("INSERT INTO lake.duck.t VALUES (1), (2), (3)")
        assert duck.execute("SELECT sum(id) FROM lake.duck.t").fetchall() == [(6,)]
    with pytest.raises(duckdb.Error), attached(lake, secret=secret(f"{created_secret.client_secret}x")):
        pass
