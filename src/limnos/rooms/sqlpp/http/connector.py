# SPDX-License-Identifier: Apache-2.0
"""`/connector`: the metadata of a dataset that AsterixDB's connectors request before they read its files.

Must not know files. Clients repeat the parameter `dataverseName` for each part. Errors that AsterixDB returns with
status 200 have status 400 here.
"""

from __future__ import annotations

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import NotFound
from limnos.rooms.sqlpp.http.errors import error_response
from limnos.rooms.sqlpp.http.parameters import request_parameters_of
from limnos.rooms.sqlpp.language import SqlppError, render, tree
from limnos.rooms.sqlpp.services.definitions.connector import DatasetInfo, dataset_info
from limnos.rooms.sqlpp.services.requests.errors import no_dataset
from limnos.rooms.sqlpp.services.statements import caller_require
from limnos.services.request.context import Context

NEEDED = 49


async def connector(request: Request, ctx: Context) -> Response:
    """Return a dataset's primary key, type and location."""
    await caller_require(ctx)
    try:
        sent = await request_parameters_of(request, ctx)
        dataverse, name = sent.name("dataverseName"), sent.text("datasetName")
        if dataverse is None or not name:
            raise SqlppError(NEEDED, "Parameter(s) dataverseName,datasetName must be specified")
        try:
            info = await dataset_info(ctx, (*dataverse, name))
        except NotFound:
            raise no_dataset((*dataverse, name), None) from None
    except SqlppError as failure:
        return error_response(failure, request_id=request.id, operation="sqlpp-connector")
    return json_response(_encode_dataset(info))


def _encode_dataset(info: DatasetInfo) -> dict[str, object]:
    return {
        "keys": ",".join(".".join(key) for key in info.keys),
        "type": {
            "type": "org.apache.asterix.om.types.ARecordType",
            "name": info.type_name[-1],
            "open": info.type is None or info.type.open,
            "fields": [] if info.type is None else [{each.name: _type(each.type)} for each in info.type.fields],
        },
        "splits": [{"ip": "127.0.0.1", "path": info.location}],
    }


def _type(type_: tree.TypeExpression) -> str:
    """Format a type as SQL++ text."""
    return render(type_)
