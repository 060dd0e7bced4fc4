# SPDX-License-Identifier: Apache-2.0
"""Bodies that are forwarded between a client and another Iceberg REST catalog: selects the forwarded parts of requests
and responses.

Has no business rules. Names in a caller's request are never forwarded byte by byte: text that two parsers might read
differently is parsed and re-encoded here. The metadata in a source's response is forwarded; credentials and
configuration only as the catalog allows (decision record 0083).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, TypeVar

import msgspec

from limnos.formats.iceberg import requirements as iceberg_requirements
from limnos.formats.iceberg.class_properties import is_allowed_in_catalog
from limnos.http.iceberg.pages import size_of
from limnos.http.request import Request
from limnos.http.response import JSON, NO_STORE, Response
from limnos.model.errors import BadRequest
from limnos.names import iceberg
from limnos.names.path import Levels
from limnos.services.federation.forwarded_requests import VendingDecision
from limnos.services.request.request_scope import RequestScope
from limnos.sources.connectors.capabilities import RestCall, RestReply
from limnos.sources.connectors.rest_errors import rest_failed_error
from limnos.sources.connectors.rest_terms import TABLE

_Shape = TypeVar("_Shape")
PASSED_ON: Final = ("io-impl", "s3.endpoint", "s3.region", "s3.path-style-access", "client.region", "gcs.project-id")
"""Configuration of object stores that clients need and may know: no secrets."""
CREDENTIALS: Final = f"GET {TABLE}/credentials"
COMMIT: Final = ("requirements", "updates")
_RENEWAL: Final = "client.refresh-credentials-endpoint"
_OF_STORES: Final = ("s3.", "gcs.", "adls.", "oss.", "client.region", "io-impl")
_SIGNING: Final = ("s3.remote-signing-enabled", "s3.signer")
"""Configuration with which a client would send requests to the source itself."""
_REQUIREMENTS_BYTES_MAX: Final = 64 << 10


class PrefixCredentials(msgspec.Struct):
    """Vended credentials for the locations that begin with `prefix` (Iceberg's StorageCredential)."""

    prefix: str
    config: dict[str, str]


class SourceLoadResponse(msgspec.Struct, rename="kebab"):
    """The parsed parts of a load response; all other parts are forwarded unchanged."""

    metadata: msgspec.Raw
    metadata_location: str | None = None
    config: dict[str, str] = {}
    storage_credentials: list[PrefixCredentials] = []


class SourceCredentialsResponse(msgspec.Struct, rename="kebab"):
    """The source's response with renewed credentials."""

    storage_credentials: list[PrefixCredentials] = []


def read_reply(call: RestCall, reply: RestReply, *, shape: type[_Shape]) -> _Shape:
    """Parse a response of the source.

    Raises SourceFailed for a malformed response; StateUnknown if the source may have made a change.
    """
    try:
        return msgspec.json.decode(reply.body, type=shape)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise rest_failed_error(call, f"an invalid response: {error}", sent=True) from error


def page_of(request: Request) -> tuple[tuple[str, str], ...]:
    """Return the query parameters of the requested page; the source checks the page token, which it issued.

    Raises BadRequest for an invalid page size.
    """
    token, size = request.query("pageToken"), request.query("pageSize")
    if token is None and size is None:
        return ()
    size_parameter = () if not size else (("pageSize", str(size_of(size))),)
    return (("pageToken", token or ""), *size_parameter)


def passed_fields_of(request: Request, data: bytes, *, names: tuple[str, ...]) -> dict[str, object]:
    """Return the fields of a body that are forwarded unchanged; the source checks them."""
    raws = request.decode_fields(data, dict[str, msgspec.Raw])
    return {name: raws[name] for name in names if name in raws}


def commit_of(
    request: Request, *, requirements: object, updates: object, path: Levels
) -> tuple[dict[str, object], bool]:
    """Rebuild a commit's body with the authorized name and re-encoded requirements.

    Returns the body, and whether the commit creates a table. Raises BadRequest if the requirements are malformed or too
    long.
    """
    few = b"[]" if requirements is None else msgspec.json.encode(requirements)
    if len(few) > _REQUIREMENTS_BYTES_MAX:
        raise BadRequest(f"Requirements of a commit have at most {_REQUIREMENTS_BYTES_MAX} bytes in this catalog")
    decoded = request.decode(few, list[object])
    makes = iceberg_requirements.is_create(decoded)
    identifier = {"namespace": path[:-1], "name": path[-1]}
    source_body = {"identifier": identifier, "requirements": decoded, "updates": [] if updates is None else updates}
    return source_body, makes


def etag_prefix_of(scope: RequestScope, mode: str, *, vends: bool = False) -> str:
    """Return the prefix of a catalog's entity tags for a snapshots mode, with or without vended credentials.

    A client's tag with another prefix is not sent to the source.
    """
    about = f"{scope.metalake} {scope.catalog} {mode} {vends}"
    return blake2b(about.encode(), digest_size=6).hexdigest()


def prefix_etag(tag: str, etag_prefix: str) -> bytes:
    """Return the server's entity tag for one of the source: the prefix `etag_prefix` and the encoded tag."""
    return b'W/"%s-%s"' % (etag_prefix.encode(), base64.urlsafe_b64encode(tag.encode("latin-1", "replace")))


def source_etag_headers(sent: bytes, etag_prefix: str) -> tuple[tuple[str, str], ...]:
    """Return the If-None-Match header with the source's own tags, decoded from those that the client sent; empty
    without any.
    """
    names: list[str] = []
    for each in sent.split(b","):
        data, _, rest = each.strip().removeprefix(b"W/").strip(b'"').partition(b"-")
        if data != etag_prefix.encode():
            continue
        try:
            tag = base64.b64decode(rest, altchars=b"-_", validate=True).decode("ascii")
        except (binascii.Error, ValueError):
            continue
        if tag and tag.isprintable():  # some servers omit the quotes
            names.append(tag)
    return (("if-none-match", ", ".join(names)),) if names else ()


def source_load_response(
    call: RestCall, reply: RestReply, *, scope: RequestScope, vending_decision: VendingDecision, etag_prefix: str
) -> Response:
    """Return a table or view of the source. Its configuration for clients is filtered by the catalog's rules."""
    response, fields = (
        read_reply(call, reply, shape=SourceLoadResponse),
        read_reply(call, reply, shape=dict[str, msgspec.Raw]),
    )
    source_config = response.config if vending_decision.vends else {}
    fields["config"] = _raw_json(_client_configuration(response.config, source_config, scope=scope, path=call.path))
    fields.pop("storage-credentials", None)
    if vending_decision.vends:
        fields["storage-credentials"] = _raw_json(entries_of(response.storage_credentials, scope=scope, path=call.path))
    headers: tuple[tuple[bytes, bytes], ...] = (JSON, NO_STORE) if vending_decision.vends else (JSON,)
    if reply.etag is not None and etag_prefix:
        headers = (*headers, (b"etag", prefix_etag(reply.etag, etag_prefix)))
    return Response(200, msgspec.json.encode(fields), headers)


def _raw_json(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _client_configuration(
    plain: Mapping[str, str], secret: Mapping[str, str], *, scope: RequestScope, path: Levels
) -> dict[str, str]:
    """Return the configuration for a client: the connection to the object store, and with credentials the URL of the
    endpoint that renews them.
    """
    entries = {key: value for key, value in plain.items() if key in PASSED_ON}
    entries |= {
        key: value for key, value in secret.items() if key.startswith(_OF_STORES) and not key.startswith(_SIGNING)
    }
    entries = {key: value for key, value in entries.items() if is_allowed_in_catalog(key, value)}
    if _RENEWAL in secret:
        prefix = iceberg.encode_prefix(scope.metalake or "", scope.catalog or "")
        namespace, name = iceberg.encode_path(path[:-1]), iceberg.encode_name(path[-1])
        entries[_RENEWAL] = f"v1/{prefix}/namespaces/{namespace}/tables/{name}/credentials"
    return entries


def entries_of(entries: list[PrefixCredentials], *, scope: RequestScope, path: Levels) -> list[dict[str, object]]:
    """Encode the credentials that a source vended as entries of `storage-credentials` for the client."""
    return [
        {"prefix": each.prefix, "config": _client_configuration({}, each.config, scope=scope, path=path)}
        for each in entries
    ]


def source_commit_response(call: RestCall, reply: RestReply, *, etag_prefix: str) -> Response:
    """Return the response to a commit with the table's new metadata from the source, and the server's entity tag."""
    response = read_reply(call, reply, shape=SourceLoadResponse)
    body = {"metadata-location": response.metadata_location, "metadata": response.metadata}
    tag = () if reply.etag is None or not etag_prefix else ((b"etag", prefix_etag(reply.etag, etag_prefix)),)
    return Response(200, msgspec.json.encode(body), (JSON, *tag))
