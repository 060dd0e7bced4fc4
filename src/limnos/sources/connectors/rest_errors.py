# SPDX-License-Identifier: Apache-2.0
"""Maps refusals of another Iceberg REST catalog to the server's errors, by the error type in the body, then by the
status.

Must not know the request's body. If the request is at fault, the error has the source's message if that is more
specific. If the source rejects this server's credentials, the error has no details. A change without an explicit
refusal may have been made, so every other failure of a change raises StateUnknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from limnos.model import errors
from limnos.names.iceberg import render
from limnos.sources.connectors.capabilities import RestCall

_MISSING: Final = {
    "NoSuchNamespaceException": "namespace",
    "NoSuchTableException": "table",
    "NoSuchViewException": "view",
}
_HERE: Final = frozenset({"NoSuchWarehouseException", "NoSuchCatalogException"})
"""Error types about objects that the catalog's own properties name."""
_ABOUT_SEVERAL: Final = frozenset({"POST /tables/rename", "POST /views/rename", "POST /transactions/commit"})
"""Requests that name several objects; only the source's message names the missing one."""
_RETRY_S_MAX: Final = 60
_TEXT_MAX: Final = 300


class _RestError(msgspec.Struct):
    message: str | None = None
    type: str | None = None


class _RestErrorEnvelope(msgspec.Struct):
    error: _RestError


def rest_refused_error(call: RestCall, *, status: int, headers: Mapping[str, str], body: bytes) -> errors.LimnosError:
    """Map the status and body of an unsuccessful response to an error of `model`."""
    error = _error_of(body)
    text, kind = _short(error.message or ""), error.type or ""
    if status in (401, 403, 407, 419):
        return errors.SourceRefused(
            f"The source refuses this operation of its user on {_about(call)}", detail=f"{status} {text}"
        )
    if status == 508:
        return source_loop_error()
    if status == 404:
        return _missing_error(call, kind=kind, text=text)
    if status == 409 or (status == 400 and kind == "NamespaceNotEmptyException"):
        return _conflict(call, kind=kind, text=text)
    if status in (405, 406, 501):
        return errors.UnsupportedOperation(
            f"The source does not support this operation on {_about(call)}: {text or status}"
        )
    if status in (400, 413, 422):
        result = errors.PropertyConflict if status == 422 else errors.BadRequest
        return result(f"{_about(call)}: the source reports: {text or status}")
    if status in (429, 503) and (status == 429 or not call.changes or "retry-after" in headers):
        return errors.ServiceUnavailable(
            f"The source is busy with {_about(call)}, and nothing was changed: try again",
            retry_after_s=_seconds(headers.get("retry-after")),
            detail=text,
        )
    return rest_failed_error(call, f"{status} {text}", sent=True)


def source_loop_error() -> errors.SourceLoop:
    """Return the error for a source that passes requests on to the server that sent them, or over too many servers."""
    return errors.SourceLoop(
        "The source of this catalog leads back to a server that sends the same request again: let the catalog's uri and"
        " warehouse name a catalog that does not show this one"
    )


def rest_failed_error(call: RestCall, detail: str, *, sent: bool) -> errors.LimnosError:
    """Return the error for a missing or invalid response. `sent`: the request may have reached the source."""
    if sent and call.changes:
        return errors.StateUnknown(
            f"The source did not report the outcome for {_about(call)}: check whether it was changed before you repeat"
            " the request",
            detail=detail,
        )
    return errors.SourceFailed("The source returns errors: try again, or check that system", detail=detail)


def _missing_error(call: RestCall, *, kind: str, text: str) -> errors.LimnosError:
    if kind in _MISSING and call.endpoint in _ABOUT_SEVERAL:
        return errors.NotFound(f"The source reports: {text or 'there is no such object'}", kind=_MISSING[kind])
    if kind in _HERE or not call.path:
        return errors.SourceFailed(
            "The source does not have this catalog's warehouse: check its uri and warehouse", detail=text
        )
    if kind == "NotFoundException" and text and call.missing != "namespace":
        return errors.MissingFile(f"{_about(call)}: the source reports: {text}")
    what = _MISSING.get(kind, call.missing)
    path = call.namespace if what == "namespace" else call.path
    return errors.NotFound(f"{what.capitalize()} does not exist: {render(path)}", kind=what)


def _conflict(call: RestCall, *, kind: str, text: str) -> errors.LimnosError:
    if kind == "NamespaceNotEmptyException" or call.conflict_meaning == "empty":
        return errors.NotEmpty(f"Namespace is not empty: {render(call.namespace)}", kind="namespace")
    if kind == "AlreadyExistsException" or (call.conflict_meaning != "conflict" and kind != "CommitFailedException"):
        name = call.conflict_meaning if call.conflict_meaning != "conflict" else call.missing
        return errors.AlreadyExists(text or f"{name.capitalize()} already exists: {render(call.path)}", kind=name)
    # Clients search for "Commit failed" in the message.
    return errors.CommitConflict(text or f"Commit failed: {_about(call)} was changed in the source meanwhile")


def _about(call: RestCall) -> str:
    return render(call.path) if call.path else "the catalog"


def _error_of(body: bytes) -> _RestError:
    try:
        return msgspec.json.decode(body, type=_RestErrorEnvelope).error
    except (msgspec.DecodeError, RecursionError):
        return _RestError()


def _seconds(text: str | None) -> int:
    return (
        min(int(text), _RETRY_S_MAX) if text is not None and text.isascii() and text.isdigit() and len(text) < 9 else 1
    )


def _short(text: str) -> str:
    """Return the first line of the source's message, without unprintable characters."""
    line = "".join(each for each in text.strip().partition("\n")[0] if each.isprintable())
    return line if len(line) <= _TEXT_MAX else f"{line[:_TEXT_MAX]}…"
