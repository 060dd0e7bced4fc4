# SPDX-License-Identifier: Apache-2.0
"""Calls of SQL++: run and cancel statements.

Rows are returned as the received JSON, so that numbers are not changed. A dataverse is given by its parts, or as a
string in display form (`sales.east`, with back quotes where needed).
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
    """Calls that run and cancel SQL++ statements at the query service."""

    @verb
    def run(
        self,
        text: str,
        *,
        dataverse: str | Sequence[str] | None = None,
        parameters: Mapping[str, object] | None = None,
        client_context_id: str | None = None,
        timeout_s: float | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Flow[StatementResponse]:
        """Run statements. `dataverse` has the effect of a USE before them; `parameters` are the values of `$name`.
        `options` are other parameters of the query service, such as `{"format": "csv"}`.

        An error before the first row is raised, with the code of the language (`ASX1077`). A later error, or a timeout,
        is in `errors` of the response, which also has the rows.
        """
        body: dict[str, object] = {
            **(options or {}),
            "statement": text,
            "dataverse": None if dataverse is None else jsonform.encode(parts_of(dataverse)),
            "client_context_id": client_context_id,
            "timeout": None if timeout_s is None else f"{timeout_s:g}s",
            **{f"${name}": msgspec.Raw(msgspec.json.encode(value)) for name, value in (parameters or {}).items()},
        }
        return call("POST", RUN, answer=StatementResponse, body=body)

    @verb
    def cancel(self, client_context_id: str) -> Flow[bool]:
        """Cancel the caller's running request with this `client_context_id`. Returns False if no such request is
        running.
        """
        try:
            yield request("DELETE", RUNNING, query={"client_context_id": client_context_id})
        except NotFoundError:
            return False
        return True
