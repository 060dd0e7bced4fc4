# SPDX-License-Identifier: Apache-2.0
"""Secrets of service accounts: service admins create and end them, and other users do not see them."""

from __future__ import annotations

from tests.http.driver import API, OWN, DriverNode
from tests.rooms.console.http.credentials.test_tokens import token_in
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

PAGE = "/console/secrets/lake/bot"
USER = "/console/people/user/lake/bot"


def secrets_of(node: DriverNode) -> list[dict]:
    """Return the secrets of the service account."""
    return node.done("GET", f"{OWN}/users/bot/secrets")["secrets"]


def exchange_status(node: DriverNode, secret: str) -> int:
    """Return the status of the exchange of a secret for a token."""
    body = f"grant_type=client_credentials&client_id=bot&client_secret={secret}".encode()
    form = "application/x-www-form-urlencoded"
    return node.ask("POST", "/iceberg/v1/oauth/tokens", body, user=None, content_type=form).status


def test_secret_is_made_shown_once_and_ended(lake: DriverNode) -> None:
    """The user's page links to the secrets; a secret gets a token until it is ended."""
    lake.done("POST", f"{API}/lake/users", {"name": "bot"})
    admin = ConsoleVisitor(lake).sign_in()
    assert PAGE in admin.read(USER).hrefs

    answer = admin.post(PAGE, {"days": "7"}, sec_fetch_site="same-origin", accept_encoding="gzip")
    secret = token_in(text_of(answer))
    (row,) = secrets_of(lake)
    listed = text_of(admin.get(PAGE))
    before = exchange_status(lake, secret)
    done = admin.post("/console/secrets/end", {"metalake": "lake", "user": "bot", "id": str(row["id"])})

    assert "content-encoding" not in answer.headers
    assert secret not in listed
    assert "has ended" in admin.read(done.headers["location"]).text
    assert (before, exchange_status(lake, secret)) == (200, 401)


def test_users_cannot_list_create_or_end_secrets(lake: DriverNode) -> None:
    """Members and the users themselves are refused to list, create and end secrets, and their pages have no link."""
    for name in ("bot", "ana"):
        lake.done("POST", f"{API}/lake/users", {"name": name})
    admin = ConsoleVisitor(lake).sign_in()
    admin.post(PAGE, {"days": "7"})
    (row,) = secrets_of(lake)

    for user in ("ana", "stranger"):
        visitor = ConsoleVisitor(lake).sign_in(user)
        assert visitor.get(PAGE).status == 403
        assert visitor.post(PAGE, {"days": "7"}).status == 403
        fields = {"metalake": "lake", "user": "bot", "id": str(row["id"])}
        assert visitor.post("/console/secrets/end", fields).status == 403
    for name in ("ana", "bot"):
        text = text_of(ConsoleVisitor(lake).sign_in(name).get(f"/console/people/user/lake/{name}"))
        assert "/console/secrets/" not in text
    assert secrets_of(lake) == [row]


def test_invalid_lifetime_or_foreign_secret_id_is_400(lake: DriverNode) -> None:
    """A lifetime that the form does not offer, and the id of another user's secret, are refused with 400."""
    lake.done("POST", f"{API}/lake/users", {"name": "bot"})
    admin = ConsoleVisitor(lake).sign_in()
    admin.post(PAGE, {"days": "7"})
    (row,) = secrets_of(lake)

    assert admin.post(PAGE, {}).status == 400
    assert admin.post("/console/secrets/end", {"metalake": "lake", "user": "bot", "id": "x"}).status == 400
    other = {"metalake": "lake", "user": "ana", "id": str(row["id"])}
    assert admin.post("/console/secrets/end", other).status == 404
    assert secrets_of(lake) == [row]
