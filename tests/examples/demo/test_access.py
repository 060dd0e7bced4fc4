# SPDX-License-Identifier: Apache-2.0
"""The demo's check of the answers to the user ana."""

from __future__ import annotations

from typing import cast

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError

from examples.demo import access


class RefusingCatalog:
    """A catalog that refuses with a given message."""

    def __init__(self, words: str) -> None:
        self.words = words

    def load_table(self, identifier: tuple[str, ...]) -> None:
        """Refuse."""
        raise ForbiddenError(self.words)


def test_refusal_naming_the_privilege_is_accepted() -> None:
    """A refusal with the missing privilege in its message is what the demo expects."""
    table_access = access.iceberg_access(
        cast("Catalog", RefusingCatalog("ana lacks select_table on main.curated.nyc.delays"))
    )

    trial = access._run_trial(table_access, server="first server", change="revoked", allowed=False)

    assert trial.answer == access.AccessAnswer(allowed=False, text="ana lacks select_table on main.curated.nyc.delays")


def test_a_refusal_without_the_privilege_fails_the_demo() -> None:
    """A refusal without the privilege's name fails the demo, because the user does not learn what to request."""
    with pytest.raises(access.AccessCheckFailed, match="does not name SELECT_TABLE"):
        access._run_trial(
            access.iceberg_access(cast("Catalog", RefusingCatalog("no"))),
            server="first server",
            change="revoked",
            allowed=False,
        )


def test_a_refusal_where_access_was_granted_fails_the_demo() -> None:
    """If a grant is not effective at the next request, the demo fails with the server's name and message."""
    table_access = access.iceberg_access(cast("Catalog", RefusingCatalog("needs SELECT_TABLE")))

    with pytest.raises(access.AccessCheckFailed, match=r"'granted', ana was refused by the second server"):
        access._run_trial(table_access, server="second server", change="granted", allowed=True)
