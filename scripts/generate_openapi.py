# SPDX-License-Identifier: Apache-2.0
"""Write openapi/*.json, the wire contracts in OpenAPI 3.1, from the route tables and the types of the bodies.

Usage: generate_openapi.py [--check]. Paths, methods, operation ids and tags come from the protocols' routers, summaries
from the handlers' docstrings, bodies from the msgspec structs that handlers decode into, query parameters from the
declarations of the routes.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.app.room_parts import protocols_of
from limnos.config.settings import Settings
from limnos.http.route_targets import Protocol
from limnos.http.routing import Route
from limnos.manifests.switches import room_set
from limnos.model.errors import (
    AuthenticationFailed,
    BadRequest,
    CommitConflict,
    LimnosError,
    NotFound,
    NotInUse,
    PermissionDenied,
    PositionPruned,
    PropertyConflict,
    RevisionEnded,
    ServiceUnavailable,
    SourceFailed,
    TooLarge,
    TooManyAttempts,
    UnsupportedOperation,
    WrongMediaType,
)

if TYPE_CHECKING:
    from limnos.http.route_targets import Handler

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "openapi"
REF = "#/components/schemas/{name}"
Json = dict[str, object]

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
FORM = "application/x-www-form-urlencoded"
CONTENTS = {
    "export-metalake": ["application/x-protobuf", "application/x-ndjson"],
}
"""Content types among which a handler selects by the request."""
ALWAYS: list[type[LimnosError]] = [
    BadRequest,
    AuthenticationFailed,
    PermissionDenied,
    NotFound,
    UnsupportedOperation,
    TooManyAttempts,
    LimnosError,
    ServiceUnavailable,
]
"""Errors of every operation that reads a credential."""
TOKENS: list[type[LimnosError]] = [BadRequest, AuthenticationFailed, TooManyAttempts, LimnosError, ServiceUnavailable]
"""Errors of operations with a credential in the body."""

_METALAKES = re.compile("/metalakes/{[^}]*}/")
_CREATED = re.compile(r", 201\b")
_FIELD = re.compile(r'form(?:\.get\(|\[)"(\w+)"')
_BODY = re.compile(r"decode\((?:await request\.body\(\)|data), (\w+|dict\[str, object\])")
_QUERY = re.compile(r'\.query(_flag|_raw|_each)?\("([\w-]+)"')
_HELPED = re.compile(r'_(?:number|moment|count)\(request, "(\w+)"')
_FLAG = re.compile(r'_flag\(request, [\w.]+, name="(\w+)"')
_PASSED_ON = re.compile(r"(\w+)\(request\b")
_PARAMETER = re.compile(r"\{(\w+)\}")

TITLES = {
    "iceberg": ("Limnos: Iceberg REST", "The routes of the Iceberg REST catalog protocol that Limnos serves."),
    "gravitino": ("Limnos: Gravitino REST", "The routes of Gravitino's REST protocol that Limnos serves."),
    "lance": ("Limnos: Lance REST", "The routes of the Lance REST Namespace protocol that Limnos serves."),
    "asterix": ("Limnos: SQL++", "AsterixDB's query service, and the other routes that its clients use."),
    "admin": ("Limnos: own API", "Routes that no other protocol has, and those at the server's root."),
}
BEFORE = (
    "The server may refuse any request before it is routed: 400 (not HTTP, or a path with invalid percent-encoding),"
    " 403 (a page of another origin), 408 (not complete in time), 421 (for another host), 431 (head too large), or 404"
    " and 405 if no operation matches."
)
"""Answers that are not listed for an operation, because they are possible for every one."""
ERRORS: dict[str, Json] = {
    "iceberg": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "code": {"type": "integer"},
            },
        },
    },
    "gravitino": {
        "code": {"type": "integer"},
        "type": {"type": "string"},
        "message": {"type": "string"},
        "stack": {"type": "array", "items": {"type": "string"}},
    },
    "lance": {
        "error": {"type": "string"},
        "code": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
    },
    "asterix": {
        "requestID": {"type": "string"},
        "status": {"type": "string", "enum": ["fatal", "timeout"]},
        "errors": {
            "type": "array",
            "items": {"type": "object", "properties": {"code": {"type": "integer"}, "msg": {"type": "string"}}},
        },
    },
    "admin": {
        "error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "request_id": {"type": "string"},
                "decision": {
                    "type": "object",
                    "description": "The access decision: the verdict, and each reason for it.",
                },
            },
        },
    },
}
"""The properties of each protocol's error body."""
KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "format": "uuid"},
    "description": (
        "A UUID of version 7. A repeated request with the same key is not executed again and gets the first response."
    ),
}
"""The header of repeatable requests."""
OAUTH: Json = {
    "type": "object",
    "required": ["error", "error_description"],
    "properties": {"error": {"type": "string"}, "error_description": {"type": "string"}},
}
"""A refusal of a token request in OAuth's form (RFC 6749, section 5.2)."""
REQUIRED = {
    "iceberg": ["error"],
    "lance": ["code"],
    "asterix": ["requestID", "status", "errors"],
    "gravitino": ["code", "type", "message"],
    "admin": ["error"],
}
MEANINGS = {
    200: "Success; the body has the result.",
    201: "Created; the body describes the object.",
    204: "Success, without a body.",
    304: "Not modified: the caller has this version.",
    400: "Malformed: the message says what is wrong and what to do.",
    401: "The credential cannot be verified.",
    403: "Refused: the message names the caller, or the missing privilege and the object.",
    404: "The object does not exist, or the caller may not know that it exists.",
    405: "Not supported for this object, or with the server's settings.",
    406: "Not supported, or not for this object: the message says what to do instead.",
    409: "Conflict: the name is taken, the container is not empty, or a requirement fails.",
    410: "The changes after the position have been deleted: start again from the current state.",
    413: "The body exceeds the size limit.",
    415: "The operation does not accept the Content-Type of the body.",
    422: "The same key is both set and removed.",
    429: "Too many wrong credentials came from this IP address: retry after Retry-After.",
    500: "Unexpected error, or the outcome of a commit is unknown: it may have succeeded.",
    502: "The external system of the catalog does not answer, or refuses.",
    503: "Temporary failure, nothing was changed: retry after Retry-After.",
}


class HandlerFacts(NamedTuple):
    """Facts from the code of a handler: its functions, and the type of its request body."""

    functions: tuple[FunctionType, ...]
    body: object | None
    keyed: bool = False
    """The operation accepts an `Idempotency-Key`."""
    word: str = ""
    """The kind of the object, `{kind}` in the docstring, if one handler serves several kinds."""

    @property
    def text(self) -> str:
        """The source of its functions."""
        return "".join(source_of(function) for function in self.functions)


@cache
def source_of(function: FunctionType) -> str:
    """Return the text of a function; cached, because many routes need the same one."""
    return inspect.getsource(function)


def unwrap(handler: object) -> HandlerFacts:
    """Unwrap methods, partials, and closures over a `handler` (and over the `shape` of its body)."""
    if isinstance(handler, partial):
        return unwrap(handler.func)
    function = handler.__func__ if isinstance(handler, MethodType) else handler
    if not isinstance(function, FunctionType):
        raise TypeError(f"{handler} is no function")
    inside = inspect.getclosurevars(function).nonlocals
    if "handler" in inside:
        known = unwrap(inside["handler"])
        return HandlerFacts(
            known.functions, inside.get("shape", known.body), known.keyed or "plan" in inside, known.word
        )
    functions = tuple(_with_helpers(function))
    home = getattr(handler, "__self__", None)
    kind, bodies = getattr(home, "kind", None), getattr(home, "bodies", {})
    body = bodies.get(function.__name__) or _body_of(functions)
    return HandlerFacts(functions, body, word="" if kind is None else kind.word)


def _with_helpers(function: FunctionType, seen: frozenset[str] = frozenset()) -> Iterator[FunctionType]:
    """Yield a handler and the functions to which it passes its request."""
    yield function
    for name in dict.fromkeys(_PASSED_ON.findall(source_of(function))):
        helper = function.__globals__.get(name)
        if isinstance(helper, FunctionType) and name not in seen and helper is not function:
            yield from _with_helpers(helper, seen | {name})


def _body_of(functions: tuple[FunctionType, ...]) -> object | None:
    for function in functions:
        for name in _BODY.findall(source_of(function)):
            if name == "dict":  # a first check of the body, before it is decoded into its type
                continue
            shape: object = function.__globals__.get(name, dict[str, object])
            return shape
    return None


def parameters_of(route: Route[Handler], known: HandlerFacts) -> list[Json]:
    """Return the parameters of an operation: segments of its path, then its query parameters."""
    parameters: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(route.path)
    ]
    if known.keyed:
        parameters.append(KEY)
    flags = {name for name, kind in read_of(known).items() if kind == "_flag"}
    for name in (*route.query, *route.query_ignored):
        shape: Json = {"type": "boolean" if name in flags else "string"}
        if name in route.query_repeatable:
            shape = {"type": "array", "items": shape}
        parameters.append({"name": name, "in": "query", "schema": shape})
    return parameters


def read_of(known: HandlerFacts) -> dict[str, str]:
    """Return the query parameters that a handler reads, each with how: `_flag`, `_raw`, `_each`, or as text."""
    query_kinds: dict[str, str] = {}
    for function in known.functions:
        query_kinds |= {name: kind for kind, name in _QUERY.findall(source_of(function))}
        query_kinds |= dict.fromkeys(_FLAG.findall(source_of(function)), "_flag")
        query_kinds |= {name: "" for name in _HELPED.findall(source_of(function)) if name not in query_kinds}
    return query_kinds


def statuses_of(protocol: Protocol, route: Route[Handler], known: HandlerFacts) -> list[int]:
    """Return the statuses that an operation may answer; those of errors are as the protocol defines them."""
    text = known.text
    done = [204] if "no_content()" in text else [201] if _CREATED.search(text) else [200]
    if "Response(304" in text:
        done.append(304)
    refused: list[type[LimnosError]] = []
    if route.operation in protocol.anonymous:
        is_sign_in = route.takes == "form" or known.body is not None
        refused += [ServiceUnavailable] if "health" in route.operation else TOKENS if is_sign_in else []
        refused += [NotFound] if "raise NotFound" in text else []
    else:
        refused += ALWAYS
        refused += [] if route.method in ("GET", "HEAD") else [CommitConflict]
        refused += [NotInUse] if _METALAKES.search(route.path) else []
        refused += [SourceFailed] if protocol.name == "iceberg" or "/catalogs" in route.path else []
    if known.body is not None or route.takes != "json":
        refused += [TooLarge, WrongMediaType]
    refused += [PositionPruned] if route.operation.endswith("-changes") else []
    refused += [RevisionEnded] if route.operation.endswith("-system-table") else []
    refused += [PropertyConflict] if "PropertyConflict" in text else []
    return [*done, *sorted({_status_of(protocol, kind) for kind in refused})]


def _status_of(protocol: Protocol, kind: type[LimnosError]) -> int:
    error = kind("", kind="table") if kind in (NotFound, NotInUse) else kind("")
    return protocol.error(error, request_id="", operation="").status


def contents_of(route: Route[Handler], known: HandlerFacts) -> list[str]:
    """Return the content types of an operation's successful answers; none for an empty body."""
    if route.method == "HEAD" or "no_content()" in known.text or 'Response(200, b"", ())' in known.text:
        return []
    if route.operation in CONTENTS:
        return CONTENTS[route.operation]
    named = [function.__globals__.get(name) for function in known.functions for name in function.__code__.co_names]
    content_types = [
        header[1].decode() for header in named if isinstance(header, tuple) and header[:1] == (b"content-type",)
    ]
    return list(dict.fromkeys(kind.partition(";")[0] for kind in content_types)) or [JSON]


def operation_of(protocol: Protocol, route: Route[Handler], refs: dict[object, Json]) -> Json:
    """Describe one operation."""
    known = unwrap(route.handler)
    summary = (
        (inspect.getdoc(known.functions[0]) or "").partition("\n\n")[0].replace("\n", " ").replace("{kind}", known.word)
    )
    prefixed = protocol.name != "iceberg" or "{prefix}" in route.path or route.path == "/config"
    operation: Json = {
        "operationId": route.operation if prefixed else f"{route.operation}-default-catalog",
        "summary": summary,
        "parameters": parameters_of(route, known),
    }
    if (body := _body_told(protocol, route, known, refs)) is not None:
        operation["requestBody"] = body
    if route.operation in protocol.anonymous:
        operation["security"] = []
    content: Json = {kind: {"schema": {} if kind == JSON else {"type": "string"}} for kind in contents_of(route, known)}
    operation["responses"] = {
        str(status): (
            _success(status, content)
            if status < 400 or route.method == "HEAD"
            else (
                _failure(status, "OAuthError")
                if route.takes == "form"
                else {"$ref": f"#/components/responses/{status}"}
            )
        )
        for status in statuses_of(protocol, route, known)
    }
    return operation


def _body_told(protocol: Protocol, route: Route[Handler], known: HandlerFacts, refs: dict[object, Json]) -> Json | None:
    """Describe the request body of an operation, if it has one."""
    if route.method == "GET":
        return None
    if protocol.name == "lance" and "request.stream(" in known.text:
        return {"required": True, "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}}}
    if route.takes == "form":
        fields = {name: {"type": "string"} for name in dict.fromkeys(_FIELD.findall(known.text))}
        return {"required": True, "content": {FORM: {"schema": {"type": "object", "properties": fields}}}}
    if known.body is None:
        return None
    kinds = [JSON, FORM] if protocol.name == "asterix" else [JSON]
    optional = "data.strip()" in known.text and not _needs_fields(known.body)
    return {"required": not optional, "content": {kind: {"schema": refs[known.body]} for kind in kinds}}


def _needs_fields(shape: object) -> bool:
    return isinstance(shape, type) and any(field.required for field in msgspec.structs.fields(shape))


def _success(status: int, content: Json) -> Json:
    return {"description": MEANINGS[status]} | ({"content": content} if content and 200 <= status < 300 else {})


def _failure(status: int, shape: str = "Error") -> Json:
    response: Json = {"description": MEANINGS[status]}
    if status in (429, 503):
        response["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
    response["content"] = {JSON: {"schema": {"$ref": REF.format(name=shape)}}}
    return response


def _any_json(shape: type) -> Json:
    """Describe a body that handlers decode themselves."""
    if shape is not object:
        raise NotImplementedError
    return {"description": "Any JSON, checked by the handler."}


def document_of(protocol: Protocol) -> Json:
    """Build the document of one protocol."""
    routes = sorted(protocol.router.routes, key=lambda route: (route.path, route.method))
    shapes = list(dict.fromkeys(unwrap(route.handler).body for route in routes))
    bodies = [shape for shape in shapes if shape is not None]
    schemas, components = msgspec.json.schema_components(bodies, schema_hook=_any_json, ref_template=REF)
    refs: dict[object, Json] = dict(zip(bodies, schemas, strict=True))
    paths: dict[str, Json] = {}
    for route in routes:
        paths.setdefault(protocol.router.root + route.path, {})[route.method.lower()] = operation_of(
            protocol, route, refs
        )
    title, description = TITLES[protocol.name]
    error = {"type": "object", "required": REQUIRED[protocol.name], "properties": ERRORS[protocol.name]}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "description": f"{description} {BEFORE}", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:8090"}],
        "security": [{"token": []}, {"simple": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "An API token."},
                "simple": {
                    "type": "http",
                    "scheme": "basic",
                    "description": (
                        "The user name only, if the server accepts it without a password (`access.authentication`)."
                    ),
                },
            },
            "responses": {str(status): _failure(status) for status in MEANINGS if f"responses/{status}" in str(paths)},
            "schemas": (
                {**dict(sorted(components.items())), "Error": error}
                | ({"OAuthError": OAUTH} if "OAuthError" in str(paths) else {})
            ),
        },
    }


def documented_protocols() -> list[Protocol]:
    """Return the protocols of a server with every installed room, Iceberg REST first. The console has pages only."""
    return [protocol for protocol in protocols_of(Settings(), room_set()) if protocol.name != "console"]


def documents() -> dict[Path, str]:
    """Return each document in its current form."""
    return {
        FOLDER / f"{protocol.name}.json": json.dumps(document_of(protocol), indent=2, ensure_ascii=False) + "\n"
        for protocol in documented_protocols()
    }


def main(*, check: bool) -> int:
    """Write the documents, or with `--check` only report the outdated ones; returns the exit code."""
    FOLDER.mkdir(exist_ok=True)
    document_texts = documents()
    behind = [
        path for path, text in document_texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in behind:
        print(f"{path.relative_to(ROOT)}: {'behind the code; run `make docs`' if check else 'written'}")
        if not check:
            path.write_text(document_texts[path], encoding="utf-8")
    return 1 if check and behind else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
