"""Calls of SQL++: statements are run, and ended before their time.

May import `names` and this room. Rows stay the JSON that came, so that no number is spelled anew. A dataverse is given by its parts, or
as text in display form (`sales.east`, back-quotes where needed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from limnos.client.errors import NotFoundError
from limnos.client.flow import Flow, Resource, S, call, request, verb
from limnos.client.paths import parts_of
from limnos.client.values import StatementResponse
from limnos.names import jsonform

RUN = "/query/service"
RUNNING = "/admin/requests/running"


class Statements(Resource[S]):
    """SQL++ at the query service."""

    __slots__ = ()

    @verb
    def run(
        self,
        text: str,
        *,
        dataverse: str | Sequence[str] | None = None,
        parameters: Mapping[str, object] | None = None,
        client_context_id: str | None = None,
        timeout_s: float | None = None,
    ) -> Flow[StatementResponse]:
        """Run statements, as if USE with the dataverse stood before them; `parameters` are the values of `$name`.

        What fails before its first row raises, with the code of the language (`ASX1077`); what fails later, or in vain waited for its
        time, has its rows and `errors`.
        """
        body: dict[str, object] = {
            "statement": text,
            "dataverse": None if dataverse is None else jsonform.encode(parts_of(dataverse)),
            "client_context_id": client_context_id,
            "timeout": None if timeout_s is None else f"{timeout_s:g}s",
            **{f"${name}": msgspec.Raw(msgspec.json.encode(value)) for name, value in (parameters or {}).items()},
        }
        return call("POST", RUN, answer=StatementResponse, body=body)

    @verb
    def cancel(self, client_context_id: str) -> Flow[bool]:
        """End what the caller runs under an id of its own; False where nothing runs under it, at least not on the node that answers."""
        try:
            yield request("DELETE", RUNNING, query={"client_context_id": client_context_id})
        except NotFoundError:
            return False
        return True
