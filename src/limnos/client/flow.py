# SPDX-License-Identifier: Apache-2.0
"""Calls as generators: a flow yields requests, receives replies, and returns its result, without I/O.

A blocking or an asynchronous sender drives a flow, so every resource is written once.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Generator, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload
from urllib.parse import quote, urlencode

import msgspec

from limnos.client.errors import ArgumentError, NoSpaceError, UnavailableError, UnexpectedAnswerError
from limnos.model.struct_types import json_decoder

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Sender")

API = "/api"
OWN = "/api/limnos/v1"
ATTEMPTS_MAX = 3
PAUSE_MAX_S = 10.0
QueryValue = str | tuple[str, ...] | None
_REPEATABLE = frozenset({"GET", "HEAD", "PUT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request. `path` is percent-encoded and relative to the server's base URL; `body` is JSON or None.

    `key` is sent as `Idempotency-Key`: the server executes such a request only once, even if it is repeated. A
    `repeatable` request may be repeated without a key, regardless of its method.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    key: str | None = None
    repeatable: bool = False
    media_type: str = "application/json"

    @property
    def target(self) -> str:
        """The request target: path and query."""
        return f"{self.path}?{urlencode(self.query, quote_via=quote, safe='')}" if self.query else self.path


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request, with a status below 400."""

    status: int
    body: bytes


Flow: TypeAlias = Generator[Request, Reply, T]


def request(
    method: str,
    path: str,
    *,
    query: Mapping[str, QueryValue] | None = None,
    body: Mapping[str, object] | None = None,
    key: str | None = None,
    repeatable: bool = False,
) -> Request:
    """Build a request. Query parameters and body fields that are None are omitted; a tuple is sent as a repeated query
    parameter.
    """
    pairs = tuple(
        (key, each)
        for key, value in (query or {}).items()
        for each in (() if value is None else (value,) if isinstance(value, str) else value)
    )
    fields = None if body is None else {key: value for key, value in body.items() if value is not None}
    return Request(
        method=method,
        path=path,
        query=pairs,
        body=None if fields is None else msgspec.json.encode(fields),
        key=key,
        repeatable=repeatable,
    )


def segments(*names: str) -> str:
    """Join names to a path; each name is percent-encoded as a whole: `/a%2Fb/c`."""
    return "".join(f"/{quote(name, safe='')}" for name in names)


def decode(reply: Reply, shape: type[T]) -> T:
    """Decode the JSON of a reply. Raises UnexpectedAnswerError if it has another form."""
    try:
        return json_decoder(shape).decode(reply.body)
    except msgspec.DecodeError as error:
        raise UnexpectedAnswerError(
            f"the server's answer could not be read ({error}); check that the URI is that of a Limnos server "
            "and that client and server are of the same version",
            status=reply.status,
            code="unexpected-answer",
        ) from error


def call(
    method: str,
    path: str,
    *,
    answer: type[T],
    field: str | None = None,
    query: Mapping[str, QueryValue] | None = None,
    body: Mapping[str, object] | None = None,
    key: str | None = None,
    repeatable: bool = False,
) -> Flow[T]:
    """Send one request, with the arguments of `request`, and decode its response as the type `answer`.

    If `field` is given, only the response's field of that name is decoded. Raises UnexpectedAnswerError if the response
    has another form.
    """
    sent = request(method, path, query=query, body=body, key=key, repeatable=repeatable)
    reply = yield sent
    if field is None:
        return decode(reply, answer)
    value: T = decode(reply, _envelope(field, cast("Hashable", answer))).value
    return value


@functools.cache
def _envelope(field: str, value: object) -> Any:  # noqa: ANN401 - made at run time
    """Return a struct type for a JSON object from which one field, `field`, is decoded as the type `value`."""
    return msgspec.defstruct("Envelope", [("value", value)], rename={"value": field})


def retry_pause_s(sent: Request, error: Exception, attempt: int) -> float | None:
    """Return the seconds to wait before a retry, or None for no retry.

    A request that was never sent, or got 503 with Retry-After, is repeated if its method is idempotent or it has a key.
    A request whose response was lost is repeated only if a second execution returns the same response, which excludes a
    DELETE without a key.
    """
    if attempt >= ATTEMPTS_MAX or not isinstance(error, UnavailableError) or isinstance(error, NoSpaceError):
        return None
    lost = error.status == 0 and error.sent
    safe = sent.repeatable or sent.key is not None or sent.method in _REPEATABLE
    if not safe and (lost or sent.method != "DELETE"):
        return None
    if error.status == 503 and error.retry_after_s is not None:
        return min(error.retry_after_s, PAUSE_MAX_S)
    return 0.1 * 4 ** (attempt - 1) if error.status == 0 else None


class BlockingSender(Protocol):
    """A sender that executes a flow with blocking I/O and returns its result."""

    def run(self, flow: Flow[T]) -> T: ...


class AwaitedSender(Protocol):
    """A sender that executes a flow with asynchronous I/O and returns an awaitable."""

    def run(self, flow: Flow[T]) -> Awaitable[T]: ...


Sender: TypeAlias = BlockingSender | AwaitedSender


class ClientScope:
    """State shared by a client's resources: the metalake, and the server's separator once it was requested."""

    __slots__ = ("metalake", "separator")

    def __init__(self, metalake: str) -> None:
        self.metalake = metalake
        self.separator: str | None = None


class Resource(Generic[S]):
    """Base class of the resources of a client: the calls on one kind of object."""

    __slots__ = ("scope", "sender")

    def __init__(self, sender: S, scope: ClientScope) -> None:
        self.sender = sender
        self.scope = scope

    def gravitino_url(self, *names: str) -> str:
        """Return the Gravitino path of an object of the client's metalake."""
        return f"{API}/metalakes{segments(self.scope.metalake, *names)}"

    def own_url(self, *names: str) -> str:
        """Return the path of an object of the client's metalake in Limnos' own API."""
        return f"{OWN}/metalakes{segments(self.scope.metalake, *names)}"


class verb(Generic[P, T]):  # noqa: N801 - a decorator, used like `property`
    """A descriptor that converts a flow to a method. The method returns the result on a blocking client, and an
    awaitable on an asynchronous client.
    """

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self.flow = flow
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> verb[P, T]: ...
    @overload
    def __get__(self, instance: Resource[BlockingSender], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Resource[AwaitedSender], owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, instance: Resource[Any] | None, owner: type) -> object:
        if instance is None:
            return self
        sender = instance.sender

        @functools.wraps(self.flow)
        def run_bound(*args: P.args, **kwargs: P.kwargs) -> object:
            return sender.run(_start_by_sender(self.flow, instance, *args, **kwargs))

        return run_bound


_SEVERAL = re.compile(r"(?:builtins\.)?(Sequence|Iterable|Collection|list|tuple|set|frozenset|Mapping|dict)\[")
"""The annotation of a parameter with several elements. One that also takes a single text begins with `str`."""


@functools.cache
def _several_of(flow: Callable[..., object]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the names of a flow's parameters, and for those with several elements the form of the argument."""
    parameters = inspect.signature(flow).parameters
    several: dict[str, str] = {}
    for name, each in parameters.items():
        if (match := _SEVERAL.match(str(each.annotation))) is not None:
            is_mapping = match[1] in {"Mapping", "dict"}
            several[name] = f'a mapping, as {name}={{"key": …}}' if is_mapping else f'several values, as {name}=["…"]'
    return tuple(parameters), several


def _start_by_sender(flow: Callable[P, Flow[T]], *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
    """Create the flow when the sender starts it, so that an asynchronous call raises its errors when it is awaited.

    Raises ArgumentError for a single text in the place of several, whose letters would be taken for the elements.
    """
    names, several = _several_of(flow)
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        if isinstance(value, (str, bytes)) and (form := several.get(name)) is not None:
            raise ArgumentError(f"the argument {name} takes {form}, and this is one text")
    return (yield from flow(*args, **kwargs))
