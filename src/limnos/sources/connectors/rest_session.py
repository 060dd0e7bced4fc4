"""How this server talks to another Iceberg REST catalog: connections, the token, what its `/v1/config` says, and a deadline for all of it.

May import httpx2, `model`, `names` and this package. Knows no operation. Nothing but that configuration and the token is kept, and both end: what
is sent goes to the catalog's own address alone, wherever an answer points, and no setting of this machine (proxies, `.netrc`) has a part in it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple
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
from limnos.names.percent import quote as quote_part
from limnos.sources.connectors.capabilities import RestCall, RestReply
from limnos.sources.connectors.rest_errors import rest_failed_error, rest_refused_error

if TYPE_CHECKING:
    from limnos.names.path import Levels

REPLY_BYTES_MAX: Final = 64 << 20
CONFIG_S: Final = 300.0
"""How long a source's configuration and a token without a stated end are taken for granted."""
IDLE_S: Final = 2.0
"""How long a connection lies idle before another one takes its place: shorter than any server's own patience."""
_EARLY_S: Final = 30.0
"""How long before its end a token is asked for anew."""
_SUCCESS: Final = frozenset({200, 201, 202, 204, 304})
_ASSUMED: Final = frozenset(
    {
        "GET /namespaces", "POST /namespaces", "GET /namespaces/{namespace}", "DELETE /namespaces/{namespace}",
        "POST /namespaces/{namespace}/properties", "GET /namespaces/{namespace}/tables", "POST /namespaces/{namespace}/tables",
        "GET /namespaces/{namespace}/tables/{table}", "POST /namespaces/{namespace}/tables/{table}",
        "DELETE /namespaces/{namespace}/tables/{table}", "POST /namespaces/{namespace}/register",
        "POST /namespaces/{namespace}/tables/{table}/metrics", "POST /tables/rename", "POST /transactions/commit",
    }
)  # fmt: skip
"""What a server has that does not say what it has, by the specification."""
_CONFIG: Final = RestCall("GET /config")
_TOKEN: Final = RestCall("GET /oauth/tokens")  # that it is a POST changes nothing of anybody's


class RestEndpoint(NamedTuple):
    """Where a source is, and as whom this server works there."""

    uri: str
    """Without `/v1`, and without a slash at its end."""
    warehouse: str | None
    token: str | None
    credential: str | None
    """`ID:SECRET` or a secret alone, for which a token is given."""
    token_uri: str
    scope: str


class _SourceConfig(NamedTuple):
    prefix: str
    separator: str
    """As it stands in a path."""
    endpoints: frozenset[str]
    until: float


class _ConfigAnswer(msgspec.Struct):
    """What is looked at of an answer of `/v1/config`."""

    defaults: dict[str, str | None] = {}
    overrides: dict[str, str | None] = {}
    endpoints: list[str] | None = None


class _TokenAnswer(msgspec.Struct):
    """What is looked at of an answer with a token."""

    access_token: str
    expires_in: float | None = None


class RestSession:
    """Requests to one source, each within a deadline."""

    def __init__(self, place: RestEndpoint, *, late_s: float, connections_max: int) -> None:
        self._place = place
        self._late_s = late_s
        self._client = httpx2.Client(
            trust_env=False, follow_redirects=False, headers={"accept": "application/json", "accept-encoding": "identity"},
            limits=httpx2.Limits(
                max_connections=connections_max, max_keepalive_connections=connections_max, keepalive_expiry=IDLE_S
            ),
        )  # fmt: skip
        self._config: _SourceConfig | None = None
        self._token: tuple[str, float] | None = None

    def close(self) -> None:
        """Let connections go."""
        self._client.close()

    def endpoints(self) -> frozenset[str]:
        """Return what the source serves, without prefixes."""
        return self._configured(self._deadline()).endpoints

    def send(self, call: RestCall) -> RestReply:
        """Send a request to the source and return its answer. Raises what a refusal means."""
        deadline = self._deadline()
        config = self._configured(deadline)
        url = f"{self._place.uri}/v1{config.prefix}{_path(call, config.separator)}"
        query = call.query if call.endpoint != "GET /namespaces" else _with_parent(call, config.separator)
        reply = self._authorized(
            call, f"{url}?{urlencode(query, quote_via=quote)}" if query else url, deadline=deadline
        )
        if reply.status not in _SUCCESS:
            raise AssertionError(reply.status)
        return reply

    def _deadline(self) -> float:
        return time.monotonic() + self._late_s

    def _authorized(self, call: RestCall, url: str, *, deadline: float) -> RestReply:
        """Send with the token; once more with a fresh one when that was given for a credential and is refused."""
        place = self._place
        if place.credential is None:
            return self._asked(call, url, deadline=deadline, token=place.token)
        try:
            return self._asked(call, url, deadline=deadline, token=self._granted(deadline))
        except SourceRefused as error:
            if not str(error.context.get("detail")).startswith(("401", "419")):
                raise
        self._token = None
        return self._asked(call, url, deadline=deadline, token=self._granted(deadline))

    def _configured(self, deadline: float) -> _SourceConfig:
        known = self._config
        if known is not None and time.monotonic() < known.until:
            return known
        query = "" if self._place.warehouse is None else f"?{urlencode({'warehouse': self._place.warehouse})}"
        try:
            reply = self._authorized(_CONFIG, f"{self._place.uri}/v1/config{query}", deadline=deadline)
        except (BadRequest, NotFound, PropertyConflict, UnsupportedOperation, MissingFile) as error:
            raise SourceFailed(
                "The source does not know what this catalog shows: look at its uri and warehouse", detail=error.message
            ) from error
        self._config = _config_of(reply.body)
        return self._config

    def _granted(self, deadline: float) -> str:
        """Return a token for the credential, as OAuth's client credentials are given one."""
        known = self._token
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        name, colon, secret = (self._place.credential or "").partition(":")
        form = {
            "grant_type": "client_credentials",
            "scope": self._place.scope,
            "client_secret": secret if colon else name,
        }
        if colon:
            form["client_id"] = name
        body = urlencode(form).encode()
        asked = _TOKEN._replace(headers=(("content-type", "application/x-www-form-urlencoded"),), body=body)
        try:
            reply = self._asked(asked, self._place.token_uri, deadline=deadline, token=None, method="POST")
            granted = msgspec.json.decode(reply.body, type=_TokenAnswer)
        except (msgspec.DecodeError, BadRequest, NotFound) as error:
            raise SourceRefused("The source gives no token for this catalog's credential", detail=str(error)) from error
        lasts_s = CONFIG_S if granted.expires_in is None else min(max(granted.expires_in - _EARLY_S, 1.0), 86_400.0)
        self._token = (granted.access_token, time.monotonic() + lasts_s)
        return granted.access_token

    def _asked(self, call: RestCall, url: str, *, deadline: float, token: str | None, method: str = "") -> RestReply:
        """Send one request and read its answer. Raises SourceFailed, StateUnknown, Unavailable, and what a refusal means."""
        headers = dict(call.headers)
        if call.body is not None:
            headers.setdefault("content-type", "application/json")
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise rest_failed_error(call, "no time is left", sent=False)
        timeout = httpx2.Timeout(left_s, connect=max(left_s / 2, 0.01), pool=max(left_s / 2, 0.01))
        sent = False
        try:
            with self._client.stream(
                method or call.method, url, content=call.body, headers=headers, timeout=timeout
            ) as response:
                sent = True
                body = _read(response, call, deadline=deadline)
                status, told = response.status_code, dict(response.headers)
        except httpx2.PoolTimeout as error:
            raise ServiceUnavailable("Too much is asked of the source at once: try again", detail=str(error)) from error
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol) as error:
            raise rest_failed_error(call, repr(error), sent=sent) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError) as error:
            raise rest_failed_error(call, repr(error), sent=True) from error
        if status not in _SUCCESS:
            raise rest_refused_error(call, status=status, headers=told, body=body)
        return RestReply(status, told.get("etag"), body)


def _read(response: httpx2.Response, call: RestCall, *, deadline: float) -> bytes:
    """Read a body as it comes, while there is time and it is no larger than may be. Raises SourceFailed, StateUnknown."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise rest_failed_error(call, "the answer is encoded, which was not asked for", sent=True)
    parts, size = [], 0
    for part in response.iter_raw():
        size += len(part)
        if size > REPLY_BYTES_MAX:
            raise rest_failed_error(call, f"the answer has more than {REPLY_BYTES_MAX} bytes", sent=True)
        if time.monotonic() > deadline:
            raise rest_failed_error(call, "the answer goes on and on", sent=True)
        parts.append(part)
    return b"".join(parts)


def _config_of(body: bytes) -> _SourceConfig:
    try:
        told = msgspec.json.decode(body, type=_ConfigAnswer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceFailed(
            "The source does not answer as an Iceberg REST catalog does: look at its uri", detail=str(error)
        ) from error
    values = {**told.defaults, **told.overrides}
    prefix = (values.get("prefix") or "").strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        raise SourceFailed("The source names a prefix that is none: have it looked at", detail=prefix)
    endpoints = _ASSUMED if told.endpoints is None else frozenset(map(_without_prefix, told.endpoints))
    spelled = "/".join(map(quote_part, prefix.split("/")))
    return _SourceConfig(
        f"/{spelled}" if prefix else "",
        values.get("namespace-separator") or "%1F",
        endpoints,
        time.monotonic() + CONFIG_S,
    )


def _without_prefix(endpoint: str) -> str:
    method, _, path = endpoint.partition(" ")
    return f"{method.upper()} {path.removeprefix('/v1').removeprefix('/{prefix}')}"


def _path(call: RestCall, separator: str) -> str:
    """Spell the path of a request. Raises NotFound for a name that would read as two there."""
    template = call.endpoint.partition(" ")[2]
    if "{namespace}" in template:
        template = template.replace("{namespace}", join_levels(call.namespace, separator))
    for placeholder in ("{table}", "{view}"):
        template = template.replace(placeholder, quote_part(call.name))
    return template


def _with_parent(call: RestCall, separator: str) -> tuple[tuple[str, str], ...]:
    """Spell the query of a list of namespaces: there the levels are joined first and escaped after."""
    if not call.namespace:
        return call.query
    join_levels(call.namespace, separator)
    return (("parent", unquote(separator).join(call.namespace)), *call.query)


def join_levels(levels: Levels, separator: str) -> str:
    """Spell levels as the source reads them. Raises NotFound for one that holds its separator: there are two such levels, or none."""
    plain = unquote(separator)
    for level in levels:
        if plain in level:
            raise NotFound(
                f"Namespace does not exist: {render(levels)}: the source parts names by '{plain}', so none of its own can hold that",
                kind="namespace",
            )
    return separator.join(map(quote_part, levels))
