# SPDX-License-Identifier: Apache-2.0
"""Transactions (own API): several changes of one or several catalogs, executed atomically.

Operations are the server's JSON, described in docs/guides/transactions.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.values import JointTransactionReceipt, TransactionReceipt


class Transactions(Resource[S]):
    """Calls that execute transactions in the client's metalake."""

    @verb
    def run(
        self, catalog: str, operations: Sequence[Mapping[str, object]], *, key: str | None = None
    ) -> Flow[TransactionReceipt]:
        """Execute the operations in order, atomically: `{"do": "move-table", "source": ["a", "t"], "target": ["b",
        "t"]}`.

        Paths begin below the catalog. With `key`, a UUID of version 7, the request can safely be repeated after a lost
        response, and the client does so.
        """
        body = {"operations": [dict(each) for each in operations]}
        url = self.own_url("catalogs", catalog, "transactions")
        return call("POST", url, answer=TransactionReceipt, body=body, key=key)

    @verb
    def run_joint(
        self, operations: Sequence[Mapping[str, object]], *, key: str | None = None
    ) -> Flow[JointTransactionReceipt]:
        """Execute operations in several catalogs in order, atomically. Each names its catalog: `{"do": "drop-table",
        "catalog": "main", "path": ["a", "t"]}`.

        `key` is as for `run`.
        """
        body = {"operations": [dict(each) for each in operations]}
        return call("POST", self.own_url("transactions"), answer=JointTransactionReceipt, body=body, key=key)
