# SPDX-License-Identifier: Apache-2.0
"""HTTP connections to another Iceberg REST catalog: pooling, tokens, its `/v1/config`, and a deadline for each call.

Must not know the operations of catalogs. Only the configuration and the token are cached, both for a limited time.
Requests are sent only to the catalog's configured URI; redirects are not followed. Settings of this machine (proxies,
`.netrc`) have no effect.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlencode

import httpx2
import msgspec

from limnos.model.errors import (
    BadRequest,
    MissingFile,
    NotFound,
    PropertyConflict,
    ServiceUnavailable,
    SourceFailed,
    SourceRefused,
    UnsupportedOperation,
)
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.names.percent import quote as quote_part
from limnos.sources.connectors.capabilities import RestCall, RestReply
from limnos.sources.connectors.hops import HOPS_HEADER, current_hops
from limnos.sources.connectors.rest_errors import rest_failed_error, rest_refused_error

REPLY_BYTES_MAX: Final = 64 << 20
CONFIG_S: Final = 300.0
"""The time for which a source's configuration, or a token without a stated expiry, is cached, in seconds."""
IDLE_S: Final = 2.0
"""The maximum idle time of a connection, in seconds: shorter than the keep-alive time of any server."""
_EARLY_S: Final = 30.0
"""The time before its expiry at which a token is renewed, in seconds."""
_SUCCESS: Final = frozenset({200, 201, 202, 204, 304})
_ASSUMED: Final = frozenset(
    {
        "GET /namespaces",
        "POST /namespaces",
        "GET /namespaces/{namespace}",
        "DELETE /namespaces/{namespace}",
        "POST /namespaces/{namespace}/properties",
        "GET /namespaces/{namespace}/tables",
        "POST /namespaces/{namespace}/tables",
        "GET /namespaces/{namespace}/tables/{table}",
        "POST /namespaces/{namespace}/tables/{table}",
        "DELETE /namespaces/{namespace}/tables/{table}",
        "POST /namespaces/{namespace}/register",
        "POST /namespaces/{namespace}/tables/{table}/metrics",
        "POST /tables/rename",
        "POST /transactions/commit",
    }
)
"""The endpoints of a source that lists none, according to the Iceberg REST specification."""
_CONFIG: Final = RestCall(endpoint="GET /config")
# Named GET although sent as POST: it changes nothing, so a failure is never ambiguous.
_TOKEN: Final = RestCall(endpoint="GET /oauth/tokens")


class RestEndpoint(NamedTuple):
    """The URI, warehouse and credentials that this server uses for a source."""

    uri: str
    """The URI without `/v1` and without a slash at the end."""
    warehouse: str | None
    token: str | None
    credential: str | None
    """`ID:SECRET` or a secret alone, exchanged for a token."""
    token_uri: str
    scope: str


class _SourceConfig(NamedTuple):
    prefix: str
    separator: str
    """The separator in its form in paths: `%1F`."""
    endpoints: frozenset[str]
    until: float


class _ConfigAnswer(msgspec.Struct):
    """The decoded fields of a `/v1/config` response."""

    defaults: dict[str, str | None] = {}
    overrides: dict[str, str | None] = {}
    endpoints: list[str] | None = None


class _TokenAnswer(msgspec.Struct):
    """The decoded fields of a token response."""

    access_token: str
    expires_in: float | None = None


class RestSession:
    """Sends requests to one source, each within a deadline."""

    def __init__(self, place: RestEndpoint, *, late_s: float, connections_max: int) -> None:
        self._place = place
        self._late_s = late_s
        self._client = httpx2.Client(
            trust_env=False,
            follow_redirects=False,
            headers={"accept": "application/json", "accept-encoding": "identity"},
            limits=httpx2.Limits(
                max_connections=connections_max, max_keepalive_connections=connections_max, keepalive_expiry=IDLE_S
            ),
        )
        self._config: _SourceConfig | None = None
        self._token: tuple[str, float] | None = None

    def close(self) -> None:
        """Close the pool of HTTP connections."""
        self._client.close()

    def endpoints(self) -> frozenset[str]:
        """Return the endpoints that the source's `/v1/config` lists, without the prefix."""
        return self._load_config(self._deadline()).endpoints

    def send(self, call: RestCall) -> RestReply:
        """Send a request to the source and return its response. Raises the error for the response's status."""
        deadline = self._deadline()
        config = self._load_config(deadline)
        if call.endpoint == "POST /namespaces":
            check_new_levels(call.namespace, config.separator)
        url = f"{self._place.uri}/v1{config.prefix}{_path(call, config.separator)}"
        query = call.query if call.endpoint != "GET /namespaces" else _with_parent(call, config.separator)
        reply = self._send_authorized(
            call, f"{url}?{urlencode(query, quote_via=quote)}" if query else url, deadline=deadline
        )
        if reply.status not in _SUCCESS:
            raise AssertionError(reply.status)
        return reply

    def _deadline(self) -> float:
        return time.monotonic() + self._late_s

    def _send_authorized(self, call: RestCall, url: str, *, deadline: float) -> RestReply:
        """Send a request with the token. If the source rejects a token that was issued for the credential, one new
        token is requested and the request repeated.
        """
        place = self._place
        if place.credential is None:
            return self._send_request(call, url, deadline=deadline, token=place.token)
        try:
            return self._send_request(call, url, deadline=deadline, token=self._request_token(deadline))
        except SourceRefused as error:
            if not str(error.context.get("detail")).startswith(("401", "419")):
                raise
        self._token = None
        return self._send_request(call, url, deadline=deadline, token=self._request_token(deadline))

    def _load_config(self, deadline: float) -> _SourceConfig:
        cached_config = self._config
        if cached_config is not None and time.monotonic() < cached_config.until:
            return cached_config
        query = "" if self._place.warehouse is None else f"?{urlencode({'warehouse': self._place.warehouse})}"
        try:
            reply = self._send_authorized(_CONFIG, f"{self._place.uri}/v1/config{query}", deadline=deadline)
        except (BadRequest, NotFound, PropertyConflict, UnsupportedOperation, MissingFile) as error:
            raise SourceFailed(
                "The source does not have this catalog's warehouse: check its uri and warehouse", detail=error.message
            ) from error
        self._config = _config_of(reply.body)
        return self._config

    def _request_token(self, deadline: float) -> str:
        """Return the token for the credential: cached, or by OAuth's client credentials grant (RFC 6749, section 4.4).

        Raises SourceRefused if the source issues none.
        """
        cached_token = self._token
        if cached_token is not None and time.monotonic() < cached_token[1]:
            return cached_token[0]
        name, colon, secret = (self._place.credential or "").partition(":")
        form = {
            "grant_type": "client_credentials",
            "scope": self._place.scope,
            "client_secret": secret if colon else name,
        }
        if colon:
            form["client_id"] = name
        body = urlencode(form).encode()
        call = _TOKEN._replace(headers=(("content-type", "application/x-www-form-urlencoded"),), body=body)
        try:
            reply = self._send_request(call, self._place.token_uri, deadline=deadline, token=None, method="POST")
            granted = msgspec.json.decode(reply.body, type=_TokenAnswer)
        except (msgspec.DecodeError, BadRequest, NotFound) as error:
            raise SourceRefused(
                "The source issues no token for this catalog's credential", detail=str(error)
            ) from error
        lasts_s = CONFIG_S if granted.expires_in is None else min(max(granted.expires_in - _EARLY_S, 1.0), 86_400.0)
        self._token = (granted.access_token, time.monotonic() + lasts_s)
        return granted.access_token

    def _send_request(
        self, call: RestCall, url: str, *, deadline: float, token: str | None, method: str = ""
    ) -> RestReply:
        """Send one HTTP request and read its response, without renewing the token.

        Raises SourceFailed without a response, StateUnknown if a change may have been made, ServiceUnavailable if all
        connections are in use, and the error for an unsuccessful status.
        """
        headers = dict(call.headers)
        if call.body is not None:
            headers.setdefault("content-type", "application/json")
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        if hops := current_hops():
            headers[HOPS_HEADER] = ", ".join(hops)
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise rest_failed_error(call, "no time is left", sent=False)
        timeout = httpx2.Timeout(left_s, connect=max(left_s / 2, 0.01), pool=max(left_s / 2, 0.01))
        is_sent = False
        try:
            with self._client.stream(
                method or call.method, url, content=call.body, headers=headers, timeout=timeout
            ) as response:
                is_sent = True
                body = _read(response, call, deadline=deadline)
                status, entries = response.status_code, dict(response.headers)
        except httpx2.PoolTimeout as error:
            raise ServiceUnavailable(
                "Too many requests to the source are in progress: try again", detail=str(error)
            ) from error
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol) as error:
            raise rest_failed_error(call, repr(error), sent=is_sent) from error
        except (httpx2.LocalProtocolError, UnicodeEncodeError):  # their texts have headers, and so the credential
            raise rest_failed_error(call, "the request has a header that cannot be sent", sent=is_sent) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError) as error:
            raise rest_failed_error(call, repr(error), sent=True) from error
        if status not in _SUCCESS:
            raise rest_refused_error(call, status=status, headers=entries, body=body)
        return RestReply(status, entries.get("etag"), body)


def _read(response: httpx2.Response, call: RestCall, *, deadline: float) -> bytes:
    """Read a body within the deadline and the size limit. Raises SourceFailed beyond a limit, or StateUnknown if the
    request may have made a change.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise rest_failed_error(call, "the response has a content encoding that was not requested", sent=True)
    parts, size = [], 0
    for part in response.iter_raw():
        size += len(part)
        if size > REPLY_BYTES_MAX:
            raise rest_failed_error(call, f"the response has more than {REPLY_BYTES_MAX} bytes", sent=True)
        if time.monotonic() > deadline:
            raise rest_failed_error(call, "the response does not end", sent=True)
        parts.append(part)
    return b"".join(parts)


def _config_of(body: bytes) -> _SourceConfig:
    try:
        answer = msgspec.json.decode(body, type=_ConfigAnswer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceFailed(
            "The source does not answer like an Iceberg REST catalog: check its uri", detail=str(error)
        ) from error
    values = {**answer.defaults, **answer.overrides}
    prefix = (values.get("prefix") or "").strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        raise SourceFailed("The source returned an invalid prefix: have it checked", detail=prefix)
    endpoints = _ASSUMED if answer.endpoints is None else frozenset(map(_without_prefix, answer.endpoints))
    encoded_prefix = "/".join(map(quote_part, prefix.split("/")))
    return _SourceConfig(
        f"/{encoded_prefix}" if prefix else "",
        values.get("namespace-separator") or "%1F",
        endpoints,
        time.monotonic() + CONFIG_S,
    )


def _without_prefix(endpoint: str) -> str:
    method, _, path = endpoint.partition(" ")
    return f"{method.upper()} {path.removeprefix('/v1').removeprefix('/{prefix}')}"


def _path(call: RestCall, separator: str) -> str:
    """Return the URL path of a request to the source. Raises NotFound for a name that the source would parse as two
    levels.
    """
    template = call.endpoint.partition(" ")[2]
    if "{namespace}" in template:
        template = template.replace("{namespace}", join_levels(call.namespace, separator))
    for placeholder in ("{table}", "{view}"):
        template = template.replace(placeholder, quote_part(call.name))
    return template


def _with_parent(call: RestCall, separator: str) -> tuple[tuple[str, str], ...]:
    """Return the query parameters of a list of namespaces, with `parent`: the levels joined by the unescaped
    separator.
    """
    if not call.namespace:
        return call.query
    join_levels(call.namespace, separator)
    return (("parent", unquote(separator).join(call.namespace)), *call.query)


def check_new_levels(levels: Levels, separator: str) -> None:
    """Raise BadRequest if a level of a new namespace contains the source's separator: the source might create two
    namespaces, and no path could name the one that was asked for.
    """
    decoded = unquote(separator)
    if any(decoded in level for level in levels):
        raise BadRequest(
            f"Namespace {render(levels)}: the source separates names by '{decoded}', so its names cannot contain it: "
            "choose another name"
        )


def join_levels(levels: Levels, separator: str) -> str:
    """Join percent-encoded levels with the source's separator, for a URL path.

    Raises NotFound for a level that contains the source's separator: the source cannot have such a namespace.
    """
    decoded = unquote(separator)
    for level in levels:
        if decoded in level:
            raise NotFound(
                f"Namespace does not exist: {render(levels)}: the source separates names by '{decoded}', so its names"
                " cannot contain it",
                kind="namespace",
            )
    return separator.join(map(quote_part, levels))
