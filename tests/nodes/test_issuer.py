# SPDX-License-Identifier: Apache-2.0
"""Sign-in at two nodes by an external issuer's tokens: groups, key rotation, refusals, an unreachable issuer, a
client's own setting.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from tests.integration.live import LIMNOS
from tests.issuer import AUDIENCE, TERMINAL, Issuer, issuing
from tests.nodes.process import Process
from tests.nodes.stores import PostgresCluster
from tests.nodes.wire import GRAVITINO, PREFIX, Wire, namespace_body, rights_body, rights_path

ROUNDS = 10
CALLERS = 64


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """A running issuer."""
    with issuing() as running:
        yield running


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def nodes(
    request: pytest.FixtureRequest, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Process, Process]]:
    """Two nodes on one store that accept the issuer's tokens and their own tokens, but no unauthenticated user
    names.
    """
    cluster = PostgresCluster() if request.param == "postgresql" else None
    directory = tmp_path_factory.mktemp(request.param)
    settings = {
        "ACCESS__AUTHENTICATION": "token",
        "OIDC__ISSUER": issuer.url,
        "OIDC__AUDIENCES": f"other,{AUDIENCE}",
        "OIDC__GROUPS_CLAIM": "groups",
        "OIDC__METALAKES": "lake",
        "OIDC__REFRESH_S": "1",
        "OIDC__TIMEOUT_S": "30",
        "OIDC__CLIENT_ID": TERMINAL,
    }
    env = {f"LIMNOS__{name}": value for name, value in settings.items()}
    database = cluster.database() if cluster else None
    pair = tuple(Process(directory / "data", log=directory / f"{i}.log", database=database, env=env) for i in (0, 1))
    try:
        for node in pair:
            node.start()
        with_rights(pair[0])
        yield pair[0], pair[1]
    finally:
        for node in pair:
            node.stop()
        if cluster is not None:
            cluster.stop()


def with_rights(node: Process) -> None:
    """Grant group crew the use of the catalog and its namespace."""
    admin = Wire(node.uri, token=node.token)
    admin.do("POST", f"{PREFIX}/namespaces", namespace_body("sea"))
    admin.do("POST", f"{GRAVITINO}/groups", {"name": "crew"})
    admin.do("POST", f"{GRAVITINO}/roles", {"name": "sailor", "properties": {}, "securableObjects": []})
    admin.do("PUT", f"{GRAVITINO}/permissions/groups/crew/grant", {"roleNames": ["sailor"]})
    admin.do("PUT", rights_path("sailor", "catalog", "main", "grant"), rights_body("use_catalog", "use_schema"))
    admin.close()


def status(node: Process, token: str) -> int:
    """Return the status of a load of the namespace with a token."""
    wire = Wire(node.uri, token=token)
    try:
        return wire.ask("GET", f"{PREFIX}/namespaces/sea").status
    finally:
        wire.close()


def test_token_groups_take_effect_at_next_request(nodes: tuple[Process, Process], issuer: Issuer) -> None:
    """A token with a group gives the group's privileges at the next request. A newer token without the group ends them,
    on both nodes.
    """
    for number in range(ROUNDS):
        here, other_node = nodes[number % 2], nodes[1 - number % 2]
        issued = {"iat": 1_700_000_000 + 2 * number}

        inside = issuer.token("ana", groups=["crew"], **issued)
        assert (status(here, inside), status(other_node, inside)) == (200, 200)
        outside = issuer.token("ana", groups=[], iat=issued["iat"] + 1)
        assert (status(here, outside), status(other_node, outside)) == (403, 403)
        assert status(other_node, inside) == 403, "an older token restores a membership that a newer one ended"


def test_disabled_user_is_refused_on_both_nodes(nodes: tuple[Process, Process], issuer: Issuer) -> None:
    """A user whom an administrator disables is refused at the next request on both nodes, also with a newer token."""
    token = issuer.token("dora", groups=["crew"], iat=1_700_000_000)
    assert [status(node, token) for node in nodes] == [200, 200]
    admin = Wire(nodes[0].uri, token=nodes[0].token)
    admin.do("PATCH", "/api/limnos/v1/metalakes/lake/users/dora", {"enabled": False})
    admin.close()

    newer = issuer.token("dora", groups=["crew"], iat=1_700_000_001)
    assert [status(node, each) for node in nodes for each in (token, newer)] == [403] * 4


def test_tokens_are_accepted_while_keys_rotate(nodes: tuple[Process, Process], issuer: Issuer) -> None:
    """While callers send requests, the issuer rotates its keys. Every issued token is accepted if its key is
    published.
    """
    issuer.groups = {f"u{i}": ["crew"] for i in range(CALLERS)}

    def call(number: int) -> list[int]:
        statuses = []
        for turn in range(ROUNDS):
            if number == 0 and turn in (3, 6):
                issuer.rotate(f"key {turn} of {nodes[0].uri}")
            statuses.append(status(nodes[(number + turn) % 2], issuer.token(f"u{number}")))
        return statuses

    with ThreadPoolExecutor(CALLERS) as threads:
        answers = [each for statuses in threads.map(call, range(CALLERS)) for each in statuses]

    assert set(answers) == {200}


def test_invalid_tokens_get_401(nodes: tuple[Process, Process], issuer: Issuer) -> None:
    """Tokens for other audiences, of other issuers, expired or oversized ones are 401 in the format of the protocol.
    Basic is not accepted here.
    """
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": issuer.key.kid}).encode()).decode().rstrip("=")
    claims = issuer.token("ana").split(".")[1]
    wrong = [
        issuer.token("ana", aud="somebody else"),
        f"{none}.{claims}.",
        f"{none}.{claims}.{claims}",
        issuer.token("ana", iss="https://other.example.com"),
        issuer.token("ana", exp=1_700_000_000),
        issuer.token("anonymous"),
        issuer.token("ana", pad="x" * 20_000),
        "a.b.c",
    ]

    assert [status(nodes[0], token) for token in wrong] == [401] * len(wrong)
    wire = Wire(nodes[0].uri, token=wrong[0])
    answer = wire.ask("GET", f"{PREFIX}/namespaces/sea")
    wire.close()
    assert "is not meant for this server" in answer.message


def test_cached_keys_are_used_while_issuer_is_unreachable(nodes: tuple[Process, Process], issuer: Issuer) -> None:
    """If the issuer is unreachable, a node uses its cached keys. A token with another key is 503 until the issuer is
    reachable.
    """
    assert status(nodes[0], issuer.token("ana")) in (200, 403)
    issuer.broken = True
    try:
        assert status(nodes[0], issuer.token("ana", jti="new")) in (200, 403)
        issuer.rotate(f"after {nodes[0].uri}")
        assert status(nodes[0], issuer.token("ana")) == 503
    finally:
        issuer.broken = False
    assert status(nodes[0], issuer.token("ana")) in (200, 403)


def test_pyiceberg_signs_in_with_its_own_settings(nodes: tuple[Process, Process], issuer: Issuer) -> None:
    """PyIceberg can sign in with its settings `credential` and `oauth2-server-uri` alone."""
    issuer.groups = {"job": ["crew"]}
    catalog = load_catalog(
        "lake",
        type="rest",
        uri=f"{nodes[1].uri}/iceberg",
        warehouse="main",
        credential="job:secret of job",
        **{"oauth2-server-uri": issuer.token_url},
    )

    assert catalog.list_namespaces() == [("sea",)]
    issuer.groups = {}


def test_device_login_session_is_valid_on_both_nodes(
    nodes: tuple[Process, Process], issuer: Issuer, tmp_path: Path
) -> None:
    """`limnos login --device` needs only the server's address. The session is valid at both nodes and is renewed
    automatically.
    """
    issuer.answers, issuer.groups = [("ana", True)], {"ana": ["crew"]}
    variables = {name: value for name, value in os.environ.items() if not name.startswith("LIMNOS")}
    file = tmp_path / "ana.json"

    def limnos(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*LIMNOS, *words],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**variables, "LIMNOS_PROFILES": str(file)},
        )

    signed = limnos("login", "--device", "--uri", nodes[0].uri)
    assert signed.returncode == 0, signed.stderr
    token = json.loads(file.read_text())["profiles"][nodes[0].uri.partition("://")[2]]["token"]

    assert f"{issuer.url}/activate" in signed.stderr
    assert [status(node, token) for node in nodes] == [200, 200]
    assert "sea" in limnos("ls", "main").stdout
    assert limnos("logout").returncode == 0
    assert not issuer.kept
    issuer.groups = {}
