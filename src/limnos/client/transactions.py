"""The call for transactions: several changes of one catalog, all of them or none, over the own API.

May import this room. Operations are the server's own JSON: docs/guides/transactions.md lists them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.values import TransactionReceipt


class Transactions(Resource[S]):
    """Transactions in the client's metalake."""

    __slots__ = ()

    @verb
    def run(
        self, catalog: str, operations: Sequence[Mapping[str, object]], *, key: str | None = None
    ) -> Flow[TransactionReceipt]:
        """Do all operations in their order, or none: `{"do": "move-table", "source": ["a", "t"], "target": ["b", "t"]}`.

        Their paths begin below the catalog. `key`, a UUID of version 7, makes it safe to send the same again when an
        answer was lost, which the client then does by itself.
        """
        body = {"operations": [dict(each) for each in operations]}
        url = self.own_url("catalogs", catalog, "transactions")
        return call("POST", url, answer=TransactionReceipt, body=body, key=key)
