# SPDX-License-Identifier: Apache-2.0
"""A user's own API tokens: created and shown once, listed without their text, and revoked only by that user."""

from __future__ import annotations

import re

import pytest

from tests.http.driver import OWN, DriverNode
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

MAKE = {"name": "laptop", "days": "30"}


def token_in(text: str) -> str:
    """Return the token that a page shows."""
    secret_match = re.search(r'<pre id="secret"[^>]*>([^<]+)</pre>', text)
    assert secret_match is not None
    return secret_match[1]


def test_new_token_text_is_shown_once_and_not_cached(admin: ConsoleVisitor) -> None:
    """The answer with the token's text is neither compressed nor cached. The list has the token's name without its
    text.
    """
    answer = admin.post("/console/tokens/create", MAKE, sec_fetch_site="same-origin", accept_encoding="gzip")

    token = token_in(text_of(answer))
    assert answer.headers["cache-control"] == "no-store"
    assert "content-encoding" not in answer.headers
    assert admin.node.ask("GET", f"{OWN}/whoami", user=None, authorization=f"Bearer {token}").status == 200
    listed = admin.get("/console/tokens")
    assert "laptop" in PageReader(text_of(listed)).text
    assert token not in text_of(listed)
    (row,) = [each for each in admin.node.done("GET", f"{OWN}/tokens")["tokens"] if each["name"] == "laptop"]
    assert row["expires_at"] is not None


def test_token_is_revoked_by_the_button(admin: ConsoleVisitor) -> None:
    """The button in the list revokes the token; a second time it reports that no token was valid."""
    token = token_in(text_of(admin.post("/console/tokens/create", MAKE | {"days": ""})))
    number = admin.node.done("GET", f"{OWN}/tokens")["tokens"][-1]["id"]

    first = admin.post("/console/tokens/revoke", {"id": str(number)})
    second = admin.post("/console/tokens/revoke", {"id": str(number)})

    assert admin.node.ask("GET", f"{OWN}/whoami", user=None, authorization=f"Bearer {token}").status == 401
    assert "The token is revoked" in admin.read(first.headers["location"]).text
    assert "no longer valid" in admin.read(second.headers["location"]).text
    assert "revoked" in admin.read("/console/tokens").text


def test_member_cannot_see_or_revoke_tokens_of_others(lake: DriverNode) -> None:
    """A member sees only their own tokens, and is refused to revoke another user's."""
    admin, ana = ConsoleVisitor(lake).sign_in(), ConsoleVisitor(lake)
    lake.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    ana.sign_in("ana")
    token = token_in(text_of(admin.post("/console/tokens/create", MAKE)))
    number = lake.done("GET", f"{OWN}/tokens")["tokens"][-1]["id"]

    assert "laptop" not in ana.read("/console/tokens").text
    assert ana.post("/console/tokens/revoke", {"id": str(number)}).status == 403
    assert lake.ask("GET", f"{OWN}/whoami", user=None, authorization=f"Bearer {token}").status == 200


@pytest.mark.parametrize(
    "fields",
    [{}, {"name": "x"}, {"name": " ", "days": "1"}, {"name": "x" * 101, "days": "1"}, {"name": "x", "days": "9999"}],
)
def test_token_needs_a_short_name_and_an_offered_lifetime(admin: ConsoleVisitor, fields: dict[str, str]) -> None:
    """A token needs a short name and an offered lifetime."""
    before = admin.node.done("GET", f"{OWN}/tokens")["tokens"]

    assert admin.post("/console/tokens/create", fields).status == 400
    assert admin.post("/console/tokens/revoke", {"id": "x"}).status == 400
    assert admin.node.done("GET", f"{OWN}/tokens")["tokens"] == before


def test_ended_statement_tokens_are_not_listed(admin: ConsoleVisitor) -> None:
    """The list omits tokens of statements that have ended; valid ones, and other revoked tokens, are listed."""
    for name in ("statement 5c75", "laptop"):
        admin.post("/console/tokens/create", MAKE | {"name": name})
    assert "statement 5c75" in admin.read("/console/tokens").text

    for each in admin.node.done("GET", f"{OWN}/tokens")["tokens"]:
        if each["name"] in ("statement 5c75", "laptop"):
            admin.post("/console/tokens/revoke", {"id": str(each["id"])})
    page = admin.read("/console/tokens")

    assert "statement 5c75" not in page.text
    assert "laptop" in page.text
