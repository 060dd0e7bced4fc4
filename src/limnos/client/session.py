# SPDX-License-Identifier: Apache-2.0
"""The two clients: `Client` is blocking, `AsyncClient` is asynchronous; both run the same flows.

The only module of the package that does I/O.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar, cast
from urllib.parse import urlsplit

import httpx2

from limnos import __version__
from limnos.client.activity.audit import Audit
from limnos.client.activity.bulk import Bulk
from limnos.client.activity.changes import Changes
from limnos.client.activity.exchange import Imports, export_request
from limnos.client.activity.jobs import Jobs, JobTemplates
from limnos.client.activity.lineage import Lineage
from limnos.client.activity.reports import Reports
from limnos.client.activity.runs import Pipelines, Runs
from limnos.client.activity.schedules import Schedules
from limnos.client.activity.system_tables import SystemTables
from limnos.client.activity.webhooks import Webhooks
from limnos.client.catalog.catalogs import Catalogs
from limnos.client.catalog.children import Children
from limnos.client.catalog.declared_objects import DeclaredObjects
from limnos.client.catalog.filesets import Filesets
from limnos.client.catalog.functions import Functions
from limnos.client.catalog.lance_libraries import AsyncLance, Lance, LanceConnection
from limnos.client.catalog.metalakes import Metalakes
from limnos.client.catalog.models import Models
from limnos.client.catalog.namespaces import Namespaces
from limnos.client.catalog.nesting import NamespaceNames
from limnos.client.catalog.objects import Objects
from limnos.client.catalog.previews import Previews
from limnos.client.catalog.schemas import Schemas
from limnos.client.catalog.searches import Searches
from limnos.client.catalog.table_checks import TableChecks
from limnos.client.catalog.tables import Tables
from limnos.client.catalog.transactions import Transactions
from limnos.client.catalog.trash import Trash
from limnos.client.catalog.views import Views
from limnos.client.errors import TLS_ADVICE, ArgumentError, ClientError, UnavailableError, error_from
from limnos.client.flow import AwaitedSender, BlockingSender, ClientScope, Flow, Reply, Request, S, retry_pause_s
from limnos.client.governance.access_requests import AccessRequests
from limnos.client.governance.policies import Policies
from limnos.client.governance.protection import Protection
from limnos.client.governance.restrictions import Restrictions
from limnos.client.governance.tags import Tags
from limnos.client.identity.access import Access
from limnos.client.identity.groups import Groups
from limnos.client.identity.logins import Logins
from limnos.client.identity.owners import Owners
from limnos.client.identity.roles import Roles
from limnos.client.identity.service_accounts import ServiceAccounts
from limnos.client.identity.tokens import Tokens
from limnos.client.identity.users import Users
from limnos.client.operation.maintenance import Maintenance
from limnos.client.operation.nodes import Nodes
from limnos.client.operation.sqlpp import Statements
from limnos.client.operation.storage import Storage
from limnos.client.operation.tasks import Tasks
from limnos.client.server import Server
from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import ClientEntry, load
from limnos.model.declared_kinds import DashboardFields, DeclaredKind, ObjectFields
from limnos.model.token_text import token_fault

T = TypeVar("T")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def added_resources(own: Collection[str]) -> tuple[ClientEntry, ...]:
    """Return the resources that rooms of other packages bring. `own` are the attributes that exist already, and
    `lance`.
    """
    entries = [entry for room in installed_rooms().manifests for entry in room.client]
    return tuple(entry for entry in entries if entry.attribute not in {*own, "lance"})


class _Resources(Generic[S]):
    """The resources of a client as attributes, such as `client.tables` and `client.roles`."""

    def __init__(self, sender: S, metalake: str) -> None:
        scope = ClientScope(metalake)
        self.server = Server(sender, scope)
        self.metalakes = Metalakes(sender, scope)
        self.catalogs = Catalogs(sender, scope)
        self.namespaces = Namespaces(sender, scope)
        self.children = Children(sender, scope)
        self.searches = Searches(sender, scope)
        self.names = NamespaceNames(sender, scope)
        self.tables = Tables(sender, scope)
        self.previews = Previews(sender, scope)
        self.table_checks = TableChecks(sender, scope)
        self.maintenance = Maintenance(sender, scope)
        self.schemas = Schemas(sender, scope)
        self.views = Views(sender, scope)
        self.models = Models(sender, scope)
        self.filesets = Filesets(sender, scope)
        self.functions = Functions(sender, scope)
        self.dashboards = DeclaredObjects(sender, scope, plural="dashboards", fields=DashboardFields)
        self.policies = Policies(sender, scope)
        self.transactions = Transactions(sender, scope)
        self.objects = Objects(sender, scope)
        self.users = Users(sender, scope)
        self.groups = Groups(sender, scope)
        self.roles = Roles(sender, scope)
        self.tags = Tags(sender, scope)
        self.owners = Owners(sender, scope)
        self.tokens = Tokens(sender, scope)
        self.storage = Storage(sender, scope)
        self.logins = Logins(sender, scope)
        self.service_accounts = ServiceAccounts(sender, scope)
        self.tasks = Tasks(sender, scope)
        self.nodes = Nodes(sender, scope)
        self.imports, self.system_tables = Imports(sender, scope), SystemTables(sender, scope)
        self.bulk = Bulk(sender, scope)
        self.trash = Trash(sender, scope)
        self.reports = Reports(sender, scope)
        self.audit = Audit(sender, scope)
        self.lineage = Lineage(sender, scope)
        self.protection = Protection(sender, scope)
        self.restrictions = Restrictions(sender, scope)
        self.access, self.access_requests = Access(sender, scope), AccessRequests(sender, scope)
        self.changes = Changes(sender, scope)
        self.webhooks = Webhooks(sender, scope)
        self.pipelines = Pipelines(sender, scope)
        self.runs, self.schedules = Runs(sender, scope), Schedules(sender, scope)
        self.job_templates = JobTemplates(sender, scope)
        self.jobs = Jobs(sender, scope)
        self.sqlpp = Statements(sender, scope)
        for entry in added_resources(vars(self)):
            setattr(
                self, entry.attribute, cast("Callable[[S, ClientScope], object]", load(entry.resource))(sender, scope)
            )

    def declared(self, declared: DeclaredKind) -> DeclaredObjects[S, ObjectFields]:
        """Return the calls on the objects of a declared kind."""
        return DeclaredObjects(self.objects.sender, self.objects.scope, plural=declared.plural, fields=declared.fields)


class _ServerTarget:
    """The server's URL and the caller's credential."""

    def __init__(
        self, uri: str, *, token: str | None, user: str | None, metalake: str, ca_file: str | Path | None
    ) -> None:
        parts = urlsplit(uri)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ArgumentError(f"'{uri}' is not the address of a server; write for example http://127.0.0.1:8090")
        if token is not None and user is not None:
            raise ArgumentError("give a token or a user, not both")
        token = None if token is None else _check_token(token)
        if user is not None and (not user or ":" in user):
            raise ArgumentError(f"'{user}' is not a user name: it must not be empty or contain ':'")
        self.uri = uri.rstrip("/")
        self.token = token
        self.metalake = metalake
        self.ca_file = None if ca_file is None else str(ca_file)
        # A proxy from the environment cannot reach this machine's loopback addresses.
        self.trust_env = parts.hostname not in _LOOPBACK
        self.verify: ssl.SSLContext | bool = True
        if ca_file is not None:
            self.verify = _tls_context(ca_file)
        elif parts.scheme == "http" and not self.trust_env:
            # No request uses TLS, so none waits until the system's authorities are read. This context trusts nobody.
            self.verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.headers = {"Accept": "application/json", "User-Agent": f"limnos/{__version__}", **_credential(token, user)}

    def iceberg_properties(self, catalog: str) -> dict[str, str]:
        results = {"type": "rest", "uri": f"{self.uri}/iceberg", "warehouse": f"{self.metalake}/{catalog}"}
        if self.ca_file is not None:
            # PyIceberg's types allow only texts, but it reads this mapping.
            results["ssl"] = cast("str", {"cabundle": self.ca_file})
        return results | ({"token": self.token} if self.token else {})

    def lance(self) -> LanceConnection:
        return LanceConnection(
            self.uri, self.metalake, token=self.token, authorization=self.headers.get("Authorization")
        )


def _tls_context(ca_file: str | Path) -> ssl.SSLContext:
    """Return a TLS context that trusts the system's certificate authorities and those of a PEM file.

    Raises ArgumentError for an unusable PEM file.
    """
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ArgumentError(f"'{ca_file}' is not a readable PEM file of CA certificates: {error}") from None
    return context


def _check_token(token: str) -> str:
    """Return a token without the space around it, as of a file's last line. Raises ArgumentError, without any part of
    the text, for one that is no token.
    """
    token = token.strip()
    if (fault := token_fault(token)) is not None:
        raise ArgumentError(f"the argument token is no token: {fault}")
    return token


def _credential(token: str | None, user: str | None) -> dict[str, str]:
    if token is not None:
        return {"Authorization": f"Bearer {token}"}
    if user is not None:
        return {"Authorization": f"Basic {base64.b64encode(f'{user}:'.encode()).decode()}"}
    return {}


def _headers(sent: Request) -> dict[str, str]:
    content = {} if sent.body is None else {"Content-Type": sent.media_type}
    return content if sent.key is None else content | {"Idempotency-Key": sent.key}


def _reply(answer: httpx2.Response) -> Reply:
    """Convert a response to a reply. Raises the error for its status."""
    if answer.status_code < 300:
        return Reply(answer.status_code, answer.content)
    headers = answer.headers
    raise error_from(
        answer.status_code,
        answer.content,
        request_id=headers.get("X-Request-Id"),
        retry_after=headers.get("Retry-After"),
    )


def _unavailable_error(uri: str, error: httpx2.TransportError) -> UnavailableError:
    """Return the error for a request without a response. Its `sent` is whether the server may have received
    the request.

    Raises ArgumentError for a request that cannot be sent, as one with an illegal header. Its message has no part of
    the request, in which a credential may be.
    """
    if isinstance(error, (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol)):
        raise ArgumentError(f"the request to {uri} was not sent: it is no valid HTTP request") from None
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return UnavailableError(f"the certificate of {uri} is not trusted, so nothing was sent ({error})", sent=False)
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
        return UnavailableError(f"no server answers at {uri} ({str(error) or type(error).__name__})", sent=False)
    if isinstance(error, httpx2.TimeoutException):
        return UnavailableError(f"the server at {uri} did not answer in time", status=504)
    if isinstance(error, httpx2.LocalProtocolError):  # its text may have a header's value
        return UnavailableError(f"the request to {uri} could not be written", sent=False)
    if uri.startswith("http://") and isinstance(error, (httpx2.RemoteProtocolError, httpx2.ReadError)):
        return UnavailableError(f"the server at {uri} closed the connection without a response ({error}); {TLS_ADVICE}")
    return UnavailableError(f"the connection to {uri} broke before the response was complete ({error})")


class _BlockingSender:
    def __init__(self, target: _ServerTarget, timeout_s: float) -> None:
        self.uri = target.uri
        self.http = httpx2.Client(
            headers=target.headers, timeout=timeout_s, trust_env=target.trust_env, verify=target.verify
        )

    def run(self, flow: Flow[T]) -> T:
        try:
            request = next(flow)
            while True:
                try:
                    reply = self._exchange(request)
                except ClientError as error:
                    request = flow.throw(error)
                else:
                    request = flow.send(reply)
        except StopIteration as stop:
            return cast("T", stop.value)

    def _exchange(self, request: Request) -> Reply:
        attempt = 1
        while True:
            try:
                return self._send(request)
            except UnavailableError as error:
                pause_s = retry_pause_s(request, error, attempt)
                if pause_s is None:
                    raise
            time.sleep(pause_s)
            attempt += 1

    def pieces(self, request: Request) -> Iterator[bytes]:
        """Yield a streamed response in chunks. Raises UnavailableError if the connection is lost before its end."""
        try:
            with self.http.stream(request.method, self.uri + request.target, headers=_headers(request)) as answer:
                if answer.status_code >= 300:
                    answer.read()
                    _reply(answer)
                yield from answer.iter_bytes()
        except httpx2.TransportError as error:
            raise _unavailable_error(self.uri, error) from error

    def _send(self, request: Request) -> Reply:
        url = self.uri + request.target
        try:
            answer = self.http.request(request.method, url, content=request.body, headers=_headers(request))
        except httpx2.TransportError as error:
            raise _unavailable_error(self.uri, error) from error
        return _reply(answer)


class _AsyncSender:
    def __init__(self, target: _ServerTarget, timeout_s: float) -> None:
        self.uri = target.uri
        self.http = httpx2.AsyncClient(
            headers=target.headers, timeout=timeout_s, trust_env=target.trust_env, verify=target.verify
        )

    async def run(self, flow: Flow[T]) -> T:
        try:
            request = next(flow)
            while True:
                try:
                    reply = await self._exchange(request)
                except ClientError as error:
                    request = flow.throw(error)
                else:
                    request = flow.send(reply)
        except StopIteration as stop:
            return cast("T", stop.value)

    async def _exchange(self, request: Request) -> Reply:
        attempt = 1
        while True:
            try:
                return await self._send(request)
            except UnavailableError as error:
                pause_s = retry_pause_s(request, error, attempt)
                if pause_s is None:
                    raise
            await asyncio.sleep(pause_s)
            attempt += 1

    async def pieces(self, request: Request) -> AsyncIterator[bytes]:
        """Yield a streamed response in chunks. Raises UnavailableError if the connection is lost before its end."""
        try:
            async with self.http.stream(request.method, self.uri + request.target, headers=_headers(request)) as answer:
                if answer.status_code >= 300:
                    await answer.aread()
                    _reply(answer)
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx2.TransportError as error:
            raise _unavailable_error(self.uri, error) from error

    async def _send(self, request: Request) -> Reply:
        url = self.uri + request.target
        try:
            answer = await self.http.request(request.method, url, content=request.body, headers=_headers(request))
        except httpx2.TransportError as error:
            raise _unavailable_error(self.uri, error) from error
        return _reply(answer)


class Client(_Resources[BlockingSender]):
    """A blocking client of one server and one metalake.

    `uri` is the server's base URL, `http://127.0.0.1:8090`. Give a `token`, or a `user` if the server accepts user
    names without authentication; if neither is given, the caller is `anonymous`. `ca_file` is a PEM file of authorities
    to trust in addition to the machine's.

    Calls raise `ClientError` and its subclasses. Idempotent calls are retried up to twice if the server is unreachable
    or requests a retry. Close the client, or use it in a `with` statement.
    """

    def __init__(
        self,
        uri: str,
        *,
        token: str | None = None,
        user: str | None = None,
        metalake: str = "lake",
        timeout_s: float = 30,
        ca_file: str | Path | None = None,
    ) -> None:
        self._target = _ServerTarget(uri, token=token, user=user, metalake=metalake, ca_file=ca_file)
        self._sender = _BlockingSender(self._target, timeout_s)
        super().__init__(self._sender, metalake)
        self.lance = Lance(self._sender, ClientScope(metalake), connection=self._target.lance())

    def whoami(self) -> str:
        """Return the user name under which the server authenticates the caller."""
        return self.server.whoami()

    def iceberg_properties(self, catalog: str) -> dict[str, str]:
        """Return the properties for PyIceberg's `load_catalog` that connect to a catalog of this metalake."""
        return self._target.iceberg_properties(catalog)

    def export(self, metalake: str, *, format: str = "proto", secrets: bool = False) -> Iterator[bytes]:
        """Stream a metalake's export. Its last record has the total count of records."""
        return self._sender.pieces(export_request(metalake, format=format, secrets=secrets))

    def close(self) -> None:
        """Close the pool of HTTP connections."""
        self._sender.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Resources[AwaitedSender]):
    """The asynchronous version of `Client`, with the same arguments, resources and errors."""

    def __init__(
        self,
        uri: str,
        *,
        token: str | None = None,
        user: str | None = None,
        metalake: str = "lake",
        timeout_s: float = 30,
        ca_file: str | Path | None = None,
    ) -> None:
        self._target = _ServerTarget(uri, token=token, user=user, metalake=metalake, ca_file=ca_file)
        self._sender = _AsyncSender(self._target, timeout_s)
        super().__init__(self._sender, metalake)
        self.lance = AsyncLance(self._sender, ClientScope(metalake), connection=self._target.lance())

    async def whoami(self) -> str:
        """Return the user name under which the server authenticates the caller."""
        return await self.server.whoami()

    def iceberg_properties(self, catalog: str) -> dict[str, str]:
        """Return the properties for PyIceberg's `load_catalog` that connect to a catalog of this metalake."""
        return self._target.iceberg_properties(catalog)

    def export(self, metalake: str, *, format: str = "proto", secrets: bool = False) -> AsyncIterator[bytes]:
        """Stream a metalake's export. Its last record has the total count of records."""
        return self._sender.pieces(export_request(metalake, format=format, secrets=secrets))

    async def close(self) -> None:
        """Close the pool of HTTP connections."""
        await self._sender.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
