# SPDX-License-Identifier: Apache-2.0
"""Lifetimes of all credentials that the server makes, under a moving clock: those of docs/reference/credentials.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import pytest

from limnos.access.authentication import Credential, hash_secret, new_secret, token_text
from limnos.config.settings import Settings
from limnos.model.entities import Token
from limnos.model.jobs import QUEUED, TemplateJob
from limnos.model.permits import upkeep_permit
from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.rooms.console.http import issuer_sign_in
from limnos.rooms.jobs.app.scheduled_pipelines import ScheduledPipelines
from limnos.rooms.maintenance.app import maintenance_process
from limnos.rooms.maintenance.services.rewriting.leases import LEASE_MS
from limnos.rooms.sqlpp.services.execution.data_statements import TOKEN_GRACE_S
from limnos.rooms.sqlpp.services.locks import statement_locks
from limnos.services.identity.console_sessions import session_open_with_password
from limnos.services.identity.tokens import token_create
from limnos.services.request.context import Context
from limnos.services.request.task_context import TaskContext
from limnos.sources import adls, credentials, gcs
from limnos.store.identity.tokens import token_read
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, node_at
from tests.http.iceberg import wire
from tests.rooms.maintenance.services.histories import DAY_MS, FIRST_MS, HistoryTable, MovedClock, set_clock
from tests.rooms.maintenance.services.rewriting.executor import FakeExecutor
from tests.rooms.maintenance.services.rewriting.executor import ask as ask_for_operation

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs/reference/credentials.md"
UNITS: Final = {"s": 1, "min": 60, "h": 3600, "days": 86_400}
REQUESTED_S: Final = 500
WORDS: Final = "correct horse battery"
NOW_MS: Final = FIRST_MS + 30 * DAY_MS


class TableRow(NamedTuple):
    """A row of the page's table: the credential's name, its purpose, and the other columns."""

    name: str
    purpose: str | None
    lives: str
    extended: str

    @property
    def seconds(self) -> int | None:
        """The lifetime in seconds, if it begins with a number."""
        match = re.match(r"(\d+) (s|min|h|days)\b", self.lives)
        return None if match is None else int(match[1]) * UNITS[match[2]]


def table_rows() -> list[TableRow]:
    """Return the rows of the page's table."""
    rows = []
    for line in PAGE.read_text().splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if not line.startswith("| ") or cells[0] == "credential":
            continue
        match = re.fullmatch(r"(.*?)(?: \(`([a-z-]+)`\))?", cells[0])
        assert match is not None
        rows.append(TableRow(match[1], match[2], cells[1], cells[2]))
    return rows


ROWS: Final = {row.name: row for row in table_rows()}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[DriverNode]:
    """A server whose clock the test moves, with ana, who has a password."""
    with node_at(tmp_path / "data") as node:
        node.done("POST", f"{API}/lake/users", {"name": "ana"})
        node.done("PUT", f"{OWN}/users/ana/password", {"password": WORDS})
        set_clock(node, NOW_MS)
        yield node


def clock_of(node: DriverNode) -> MovedClock:
    """Return the server's clock."""
    clock = node.built.services.store.time
    assert isinstance(clock, MovedClock)
    return clock


def bearer(node: DriverNode, text: str, method: str = "GET", target: str = f"{OWN}/whoami") -> DriverAnswer:
    """Send a request with a token."""
    return node.ask(method, target, user=None, authorization=f"Bearer {text}")


def form(node: DriverNode, **fields: str) -> DriverAnswer:
    """Send a form to the OAuth token route."""
    return node.ask(
        "POST",
        "/iceberg/v1/oauth/tokens",
        urlencode(fields).encode(),
        user=None,
        content_type="application/x-www-form-urlencoded",
    )


def login(node: DriverNode) -> dict[str, Any]:
    """Sign in with ana's password."""
    answer = node.post(f"{OWN}/login", {"user": "ana", "password": WORDS}, user=None)
    assert answer.status == 200
    return answer.json()


class CredentialCase(NamedTuple):
    """A credential: its text, and a function that returns the status of its use."""

    text: str
    use: Callable[[DriverNode, str], int]


def uses_bearer(node: DriverNode, text: str) -> int:
    """Return the status of a request with a token."""
    return bearer(node, text).status


def uses_refresh(node: DriverNode, text: str) -> int:
    """Return the status of a refresh."""
    return node.post(f"{OWN}/login", {"refresh_token": text}, user=None).status


def uses_secret(node: DriverNode, text: str) -> int:
    """Return the status of a request for a token with a service account's secret."""
    return form(node, grant_type="client_credentials", client_id="robot", client_secret=text).status


def uses_cookie(node: DriverNode, text: str) -> int:
    """Return the status of a page of the console; 303 leads to the sign-in."""
    status = node.ask("GET", "/console/", user=None, host="localhost:8090", cookie=f"limnos-8090={text}").status
    return 401 if status == 303 else status


def uses_code(node: DriverNode, text: str) -> int:
    """Return the status of the page that a code opens."""
    return node.ask("GET", f"/console/enter?code={text}", user=None).status


def uses_operation(node: DriverNode, text: str) -> int:
    """Return the status of a load of the operation's table."""
    return bearer(node, text, target=wire.table_path("a", "t")).status


def uses_executor(node: DriverNode, text: str) -> int:
    """Return the status of a request for operations."""
    answer = node.ask(
        "POST",
        f"{OWN}/metalakes/lake/maintenance/leases",
        {"holder": "x", "limit": 1},
        user=None,
        authorization=f"Bearer {text}",
    )
    return answer.status


def make_api_token(node: DriverNode) -> CredentialCase:
    """Create an API token."""
    return CredentialCase(str(node.done("POST", f"{OWN}/tokens", {"expires_in_s": REQUESTED_S})["token"]), uses_bearer)


def make_secret(node: DriverNode, **more: int) -> CredentialCase:
    """Create a service account's secret."""
    node.post(f"{API}/lake/users", {"name": "robot"})
    return CredentialCase(str(node.done("POST", f"{OWN}/users/robot/secrets", more)["client_secret"]), uses_secret)


def make_access_token(node: DriverNode) -> CredentialCase:
    """Get a token for a service account's secret."""
    secret = make_secret(node).text
    answer = form(node, grant_type="client_credentials", client_id="robot", client_secret=secret)
    return CredentialCase(str(answer.json()["access_token"]), uses_bearer)


def make_console_session(node: DriverNode) -> CredentialCase:
    """Open a session of the console."""
    ctx = node.built.services

    work = session_open_with_password(
        Context(ctx, Credential(user="anonymous"), "r"), user="ana", password=WORDS, address="", client="browser"
    )
    return CredentialCase(node.runner.run(work).text, uses_cookie)


def make_statement_token(node: DriverNode) -> CredentialCase:
    """Create a token as a statement of 100 s does."""
    ctx = Context(node.built.services, Credential(user="ana"), "r")
    work = token_create(ctx, user=None, name="statement", expires_in_s=100 + TOKEN_GRACE_S, purpose=TokenPurpose.WORK)
    return CredentialCase(node.runner.run(work)[1], uses_bearer)


def make_task_token(node: DriverNode) -> CredentialCase:
    """Create a token as a task does."""
    services, secret = node.built.services, new_secret()
    work = TaskContext(
        0,
        store=services.store,
        permit=upkeep_permit("test"),
        allowed=services.defaults.allowed,
        warehouse="",
        lease_ms=60_000,
    )
    token: Token = node.runner.run(
        work.create_token(
            user="ana", name="task", secret_hash=hash_secret(secret), trust=TokenTrust.BELIEVED, root_id=None
        )
    )
    return CredentialCase(token_text(token.id, secret), uses_bearer)


def make_schedule_token(node: DriverNode) -> CredentialCase:
    """Create the token of a scheduled run, whose run neither extends nor ends it."""

    class Pipelines(ScheduledPipelines):
        async def _extend(self, token: Token) -> None:
            """Leave the token, so that its expiry can be seen."""

    job = TemplateJob(
        id=1,
        metalake_id=1,
        template_id=1,
        uuid="1",
        user="ana",
        user_id=1,
        state=QUEUED,
        holder="",
        beat_at=0,
        lease_ms=0,
        message=None,
        exit_code=None,
        queued_at=0,
        started_at=None,
        ended_at=None,
        owner_id=None,
    )
    pipelines = Pipelines(node.built.services, Settings(), uri="http://127.0.0.1:1")
    run = pipelines._token(job, trust=TokenTrust.BELIEVED)
    text = node.runner.run(run.__aenter__())
    assert text is not None
    return CredentialCase(text, lambda own, given_text: uses_bearer(own, given_text) if run else 0)


def make_operation_token(node: DriverNode) -> CredentialCase:
    """Lease an operation."""
    table = HistoryTable(node)
    table.append(12)
    assert ask_for_operation(node).status == 200
    (leased,) = FakeExecutor(node).lease()
    return CredentialCase(str(leased["token"]), uses_operation)


def make_executor_token(node: DriverNode) -> CredentialCase:
    """Start the server's executor, without its process."""
    texts: list[str] = []

    class Process(maintenance_process.MaintenanceProcess):
        async def _process(self, start: bytes, *_: object) -> None:
            texts.append(re.findall(rb'"token":"([^"]*)"', start)[0].decode())

        async def _revoke(self, token: Token) -> None:
            """Leave the token, so that its expiry can be seen."""

    node.runner.run(Process(node.built.services, Settings(), uri="http://127.0.0.1:1")._run("lake"))
    return CredentialCase(texts[0], uses_executor)


TOKENS: Final[dict[str, tuple[Callable[[DriverNode], CredentialCase], int | None]]] = {
    "API token": (make_api_token, REQUESTED_S),
    "session": (lambda node: CredentialCase(login(node)["token"], uses_bearer), None),
    "refresh token": (lambda node: CredentialCase(login(node)["refresh_token"], uses_refresh), None),
    "service account's secret": (lambda node: make_secret(node, expires_in_s=REQUESTED_S), REQUESTED_S),
    "token for such a secret": (make_access_token, None),
    "console session": (make_console_session, 3600),
    "code for the console": (
        lambda node: CredentialCase(str(node.done("POST", f"{OWN}/console/codes")["code"]), uses_code),
        None,
    ),
    "token of a statement": (make_statement_token, 100 + 60),
    "token of a scheduled pipeline's run": (make_schedule_token, None),
    "token of a task": (make_task_token, None),
    "token of an operation": (make_operation_token, None),
    "token of the server's executor": (make_executor_token, None),
}
"""How each kind of token is made, with its lifetime in seconds where the page names no number."""
CONSTANTS: Final[dict[str, tuple[float, ...]]] = {
    "vended keys of S3, GCS and Azure": (credentials.DURATION_S, gcs.LIFE_S, adls.LIFE_S),
    "verified token of an issuer": (Settings().oidc.refresh_s,),
    "sign-in at the issuer": (issuer_sign_in.LIFE_S,),
    "handle of SQL++ results": (Settings().sqlpp.results_keep_s,),
    "lock of a SQL++ statement": (statement_locks.LEASE_MS / 1000,),
}
"""Lifetimes of other credentials in seconds, as the code has them."""
WITHOUT_A_NUMBER: Final = {"signature of an S3 request", "secret of a webhook"}
MAKERS: Final = {
    "services/identity/tokens.py",
    "services/identity/logins.py",
    "services/identity/service_accounts.py",
    "services/identity/console_sessions.py",
    "services/request/task_context.py",
    "rooms/maintenance/services/rewriting/leases.py",
    "rooms/maintenance/app/maintenance_process.py",
    "rooms/jobs/app/scheduled_pipelines.py",
}
"""The modules that create tokens. A new one needs a row in the page, and a case above."""


@pytest.mark.parametrize("name", TOKENS)
def test_token_has_the_listed_lifetime(lake: DriverNode, name: str) -> None:
    """A token is valid until the end of the lifetime that the page lists, and refused from then on."""
    make, given_s = TOKENS[name]
    credential = make(lake)
    life_s = given_s or ROWS[name].seconds
    assert life_s is not None
    token = lake.runner.run(lake.built.services.gate.look_up(lambda: token_read(int(credential.text.split("_")[1]))))
    assert token is not None
    assert (token.expires_at or 0) - clock_of(lake).at_ms == life_s * 1000
    assert token.purpose == ROWS[name].purpose

    clock_of(lake).at_ms += life_s * 1000 - 1
    if not ROWS[name].extended.startswith("by use"):
        assert credential.use(lake, credential.text) in (200, 204), "it is valid until its end"
    clock_of(lake).at_ms += 1
    assert credential.use(lake, credential.text) == 401


def test_page_lists_every_credential() -> None:
    """The page has a row for each purpose of a token and for each other credential, and no module creates tokens
    without a row.
    """
    source = ROOT / "src/limnos"
    makers = {
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if "tokens.create(\n" in path.read_text()
    }

    assert ROWS.keys() == TOKENS.keys() | CONSTANTS.keys() | WITHOUT_A_NUMBER
    assert {row.purpose for row in ROWS.values()} - {None} == {each.value for each in TokenPurpose}
    assert {each for each in makers if not each.startswith("cli/")} == MAKERS


@pytest.mark.parametrize("name", CONSTANTS)
def test_other_credential_has_the_listed_lifetime(name: str) -> None:
    """The lifetimes of credentials that are not tokens are those of the page."""
    assert set(CONSTANTS[name]) == {ROWS[name].seconds}


def test_page_lists_further_lifetimes() -> None:
    """The page names the lease of an operation, with which its token is extended, and the lifetimes of a session of the
    console over HTTPS and over HTTP.
    """
    console = ROWS["console session"]
    assert (Settings().console.idle_s, Settings().console.session_s) == (console.seconds, 24 * 3600)
    assert "over HTTP 1 h" in console.lives
    assert "up to 24 h" in console.extended
    assert f"({LEASE_MS // 1000} s)" in ROWS["token of an operation"].extended
