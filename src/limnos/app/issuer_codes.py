# SPDX-License-Identifier: Apache-2.0
"""Sign-in of browsers at the external issuer: the authorization URL, and the exchange of the authorization code.

Must not know sessions. RFC 6749, section 4.1 (authorization codes), RFC 7636 (PKCE), OpenID Connect Discovery 1.0,
section 4. Of the issuer's tokens only the ID token leaves this module; the caller verifies it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ipaddress
import json
import ssl
import time
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import quote, urlencode, urlsplit

import httpx2
import structlog

from limnos.app.fair_queue import FairQueue
from limnos.config.access import OidcSection
from limnos.model.errors import AuthenticationFailed, ServiceUnavailable
from limnos.services.identity.issuer import AuthorizationRequest

DOCUMENT_BYTES_MAX: Final = 1 << 20
DISCOVERY: Final = "/.well-known/openid-configuration"
EXCHANGES_MAX: Final = 16
"""The maximum number of concurrent exchanges of codes, which protects the issuer from floods of requests through this
server.
"""
PEER_EXCHANGES_MAX: Final = 4
"""The maximum number of concurrent exchanges of browsers at one IP address, which leaves slots to other addresses.
Behind a proxy all browsers have the proxy's address, and may use all slots.
"""
PEER_WAITING_MAX: Final = 64
"""The maximum number of exchanges of one address that wait for a slot; a network with address translation has one."""
WAITING_MAX: Final = 1_024
"""The maximum number of exchanges that wait for a slot, of all addresses."""
_NETWORK_BITS: Final = 64
"""The prefix length of an IPv6 network that counts as one address, because one machine can use all of its addresses."""
RETRY_S: Final = 5
_STANDING: Final = "The console's sign-in at the issuer is misconfigured: {}. Tell the operator of this server"

log = structlog.get_logger(__name__)


class CodeSignIn:
    """The OAuth client of the console at the issuer. `name` is the issuer's host, "" if the settings have no
    client id.
    """

    def __init__(self, settings: OidcSection, *, is_behind_proxy: bool = False) -> None:
        """Create the client. Behind a proxy the browser's IP address is unknown, so exchanges are not limited per
        address.
        """
        self.client_id = settings.console_client_id or ""
        self.name = urlsplit(settings.issuer or "").netloc if self.client_id else ""
        # Reading the certificates of authorities takes 50 ms on the event loop: once, not in each sign-in.
        self._tls: ssl.SSLContext | bool = httpx2.create_ssl_context() if self.client_id else True
        self._issuer = settings.issuer or ""
        self._secret_file = settings.console_secret_file
        self._scope = " ".join(each for each in settings.scope.split() if each != "offline_access")
        self._timeout_s = settings.timeout_s
        self._refresh_s = float(settings.refresh_s)
        self._endpoints: tuple[str, str] | None = None
        self._read_at = float("-inf")
        self._discovery: asyncio.Task[None] | None = None
        running_max, waiting_max = (
            (EXCHANGES_MAX, WAITING_MAX) if is_behind_proxy else (PEER_EXCHANGES_MAX, PEER_WAITING_MAX)
        )
        self._turns = FairQueue(
            EXCHANGES_MAX, limits={"peer": running_max}, waits={"peer": waiting_max}, waiting_max=WAITING_MAX
        )

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """Return the URL to which the browser is redirected to sign in.

        Raises AuthenticationFailed without a client id, ServiceUnavailable if discovery fails.
        """
        authorize, _ = await self._discovered_endpoints()
        digest = hashlib.sha256(request.verifier.encode()).digest()
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self.client_id,
                "redirect_uri": request.redirect_uri,
                "scope": self._scope,
                "state": request.state,
                "nonce": request.nonce,
                "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
                "code_challenge_method": "S256",
            }
        )
        return f"{authorize}{'&' if '?' in authorize else '?'}{query}"

    async def id_token(self, code: str, request: AuthorizationRequest) -> str:
        """Exchange an authorization code for an ID token. Raises AuthenticationFailed if the issuer rejects the code
        or the client, ServiceUnavailable if the issuer does not respond or too many exchanges wait.
        """
        _, url = await self._discovered_endpoints()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": request.redirect_uri,
            "code_verifier": request.verifier,
        }
        headers = {"accept": "application/json"}
        if self._secret_file is None:
            form["client_id"] = self.client_id
        else:
            pair = f"{quote(self.client_id, safe='')}:{quote(self._secret(), safe='')}"  # RFC 6749, section 2.3.1
            headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        try:
            turn = self._turns.turn((("peer", network_of(request.peer)),))
            async with turn, asyncio.timeout(self._timeout_s), self._client() as client:
                status, document = await _json_of(client, url, form=form, headers=headers)
        except (OSError, ValueError, TimeoutError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            self._raise_unavailable(error)
        return self._id_token_of(status, document)

    def _id_token_of(self, status: int, document: object) -> str:
        if status == 200 and isinstance(document, dict) and isinstance(document.get("id_token"), str):
            return str(document["id_token"])
        code = document.get("error") if isinstance(document, dict) else None
        if status >= 500 or (status != 200 and not isinstance(code, str)):
            self._raise_unavailable(ValueError(f"its token endpoint answered {status}"))
        if code == "invalid_grant":
            raise AuthenticationFailed("This sign-in was used already or has expired: sign in again")
        log.warning("the issuer refuses the console", issuer=self._issuer, error=str(code)[:100])
        raise AuthenticationFailed(
            _STANDING.format("the issuer refuses the console's client" if code else "no ID token")
        )

    def _secret(self) -> str:
        try:
            return Path(self._secret_file or "").read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            log.warning("the file in oidc.console_secret_file cannot be read", error=str(error))
            raise AuthenticationFailed(_STANDING.format("the client secret cannot be read")) from None

    async def _discovered_endpoints(self) -> tuple[str, str]:
        """Return the issuer's authorization and token endpoints, from its cached or fetched discovery document. Raises
        AuthenticationFailed without a client id, ServiceUnavailable if it cannot be fetched.
        """
        if not self.client_id:
            raise AuthenticationFailed("The console offers no sign-in at an issuer: oidc.console_client_id is not set")
        if self._endpoints is not None and time.monotonic() - self._read_at < self._refresh_s:
            return self._endpoints
        if self._discovery is None or self._discovery.done():
            self._discovery = asyncio.create_task(self._discover())  # one request for all waiting callers
        try:
            await asyncio.shield(self._discovery)
        except (OSError, ValueError, TimeoutError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            if self._endpoints is None:
                self._raise_unavailable(error)
        assert self._endpoints is not None  # noqa: S101 - fetched now, or cached
        return self._endpoints

    async def _discover(self) -> None:
        async with asyncio.timeout(self._timeout_s), self._client() as client:
            document = await discovery_of(client, self._issuer)
        names = ("authorization_endpoint", "token_endpoint")
        self._endpoints = (self._endpoint(document, names[0]), self._endpoint(document, names[1]))
        self._read_at = time.monotonic()

    def _endpoint(self, document: dict[str, object], name: str) -> str:
        url = document.get(name)
        scheme = urlsplit(self._issuer).scheme
        if (
            not isinstance(url, str)
            or urlsplit(url).scheme not in {"https", scheme}
            or not (url.isascii() and url.isprintable())
        ):
            raise ValueError(f"{self._issuer} does not publish a usable '{name}'")
        return url

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(timeout=self._timeout_s, follow_redirects=False, verify=self._tls)

    def _raise_unavailable(self, error: Exception) -> NoReturn:
        log.warning("the issuer cannot be reached", issuer=self._issuer, error=str(error) or type(error).__name__)
        raise ServiceUnavailable(
            f"The issuer {self.name} does not answer correctly at the moment: try again, or sign in another way",
            retry_after_s=RETRY_S,
        ) from None


def network_of(peer: str) -> str:
    """Return the key of an IP address for the rate limit: the network of an IPv6 address, else the address
    unchanged.
    """
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return peer
    return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False))


async def discovery_of(client: httpx2.AsyncClient, issuer: str) -> dict[str, object]:
    """Fetch the issuer's discovery document. Raises ValueError if it is invalid, httpx2.HTTPError if the request
    fails.
    """
    url = issuer.rstrip("/") + DISCOVERY
    document = await json_document(client, url)
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        raise ValueError(f"{url} is not the metadata of issuer {issuer}")
    return document


async def json_document(client: httpx2.AsyncClient, url: str) -> object:
    """Fetch a JSON document. Raises ValueError for an unusable response, httpx2.HTTPError if the request fails."""
    status, document = await _json_of(client, url, headers={"accept": "application/json"})
    if status != 200:
        raise ValueError(f"{url} answers {status}")
    return document


async def _json_of(
    client: httpx2.AsyncClient, url: str, *, headers: dict[str, str], form: dict[str, str] | None = None
) -> tuple[int, object]:
    """GET a document, or POST a form. Returns the status and the decoded JSON, which is None for an error response
    without JSON. Raises ValueError for a response that is too large, or successful without JSON.
    """
    method = "GET" if form is None else "POST"
    async with client.stream(method, url, headers=headers, data=form) as answer:
        body = b""
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > DOCUMENT_BYTES_MAX:
                raise ValueError(f"{url} sends more than {DOCUMENT_BYTES_MAX} bytes")
    try:
        return answer.status_code, json.loads(body)
    except ValueError:
        if answer.status_code == 200:
            raise
        return answer.status_code, None
