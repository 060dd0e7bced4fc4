# SPDX-License-Identifier: Apache-2.0
"""Unknown addresses: the answer says what a wrong address in a client's settings should be."""

from __future__ import annotations

import pytest

from tests.http.driver import DriverNode


@pytest.mark.parametrize(
    "path, advice",
    [
        ("/v1/config", "Iceberg REST is at /iceberg"),
        ("/iceberg/v1/v1/config", "give the address that ends in /iceberg"),
        ("/iceberg/iceberg/v1/config", "has /iceberg twice"),
        ("/iceberg/v1/nothing/of/this", ""),
    ],
)
def test_unknown_address_has_advice_for_wrong_settings(node: DriverNode, path: str, advice: str) -> None:
    """PyIceberg and others show the message, so it is where the user sees what to write."""
    answer = node.get(path)

    assert answer.status == 404
    assert "This address does not exist" in answer.body.decode()
    assert advice in answer.body.decode()
