"""Programs sign in by their own `credential` setting and a service account's secret: PyIceberg in both of its ways,
DuckDB. A token and the secret end while they run.
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
    """A server that takes tokens only, and a program etl that owns the catalog."""
    folder = tmp_path_factory.mktemp("credentials")
    settings = folder / "lake.toml"
    settings.write_text('[access]\nauthentication = "token"\n')
    with serving(folder / "data", "--config", str(settings)) as running:
        with Client(running.uri, token=running.token) as admin:
            admin.users.add("etl")
            admin.owners.set("main", "etl", kind="catalog")
        yield running


@pytest.fixture
def admin(lake: LiveServer) -> Iterator[Client]:
    """The administrator's client; the program has no secret before a test, and none after it."""
    with Client(lake.uri, token=lake.token) as client:
        yield client
        for secret in client.service_accounts.list_secrets("etl"):
            client.service_accounts.end_secret("etl", secret.id)


def pyiceberg(lake: LiveServer, **properties: object) -> RestCatalog:
    """PyIceberg with what its user writes."""
    told = {"type": "rest", "uri": f"{lake.uri}/iceberg", "warehouse": "main", **properties}
    catalog = load_catalog("lake", **told)  # type: ignore[arg-type]
    assert isinstance(catalog, RestCatalog)
    return catalog


def by_credential(lake: LiveServer, secret: NewSecret) -> dict[str, object]:
    """The properties `credential` and `oauth2-server-uri`."""
    return {
        "credential": f"{secret.client_id}:{secret.client_secret}",
        "oauth2-server-uri": f"{lake.uri}/iceberg/v1/oauth/tokens",
    }


def by_manager(lake: LiveServer, secret: NewSecret) -> dict[str, object]:
    """The property `auth`, whose manager sends id and secret in a header."""
    told = {
        "client_id": secret.client_id, "client_secret": secret.client_secret, "token_url": f"{lake.uri}/iceberg/v1/oauth/tokens",
    }  # fmt: skip
    return {"auth": {"type": "oauth2", "oauth2": told}}


@pytest.mark.parametrize("way", [by_credential, by_manager])
def test_pyiceberg_writes_and_reads(lake: LiveServer, admin: Client, way) -> None:  # noqa: ANN001
    """By its own settings alone; a secret that is wrong is told as such."""
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


def test_pyiceberg_goes_on_over_the_end_of_a_token(lake: LiveServer, admin: Client) -> None:
    """Whose token is void asks for the next one by itself; whose secret was ended is refused, and the new secret's
    program goes on.
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
    """By CLIENT_ID, CLIENT_SECRET and OAUTH2_SERVER_URI; a wrong secret attaches nothing."""
    made = admin.service_accounts.create_secret("etl")

    def secret(text: str) -> str:
        return f"TYPE iceberg, CLIENT_ID 'etl', CLIENT_SECRET '{text}', OAUTH2_SERVER_URI '{lake.uri}/iceberg/v1/oauth/tokens'"

    with attached(lake, secret=secret(made.client_secret)) as duck:
        duck.execute("CREATE SCHEMA lake.duck")
        duck.execute("CREATE TABLE lake.duck.t (id BIGINT)")
        duck.execute("INSERT INTO lake.duck.t VALUES (1), (2), (3)")
        assert duck.execute("SELECT sum(id) FROM lake.duck.t").fetchall() == [(6,)]
    with pytest.raises(duckdb.Error), attached(lake, secret=secret(f"{made.client_secret}x")):
        pass
