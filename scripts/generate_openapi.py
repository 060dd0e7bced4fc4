"""Write openapi/*.json, the wire contracts in OpenAPI 3.1, from the route tables and the shapes of the bodies.

Usage: generate_openapi.py [--check]. Paths, methods, operation ids and tags come from the protocols' routers, summaries from
the handlers' docstrings, bodies from the msgspec structs that handlers decode into, query parameters from what handlers
ask a request for.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from limnos.http.admin.protocol import AdminProtocol
from limnos.http.application import Protocol
from limnos.http.asterix.protocol import AsterixProtocol
from limnos.http.gravitino.protocol import GravitinoProtocol
from limnos.http.iceberg.protocol import IcebergProtocol
from limnos.http.lance.protocol import LanceProtocol
from limnos.http.routing import Route

if TYPE_CHECKING:
    from limnos.http.application import Handler

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "openapi"
REF = "#/components/schemas/{name}"
Json = dict[str, object]

_BODY = re.compile(r"decode\((?:await request\.body\(\)|data), (\w+|dict\[str, object\])")
_QUERY = re.compile(r'\.query(_flag|_raw)?\("(\w+)"')
_PASSED_ON = re.compile(r"(\w+)\(request\b")
_PARAMETER = re.compile(r"\{(\w+)\}")

TITLES = {
    "iceberg": ("Limnos: Iceberg REST", "What Limnos serves of the Iceberg REST catalog protocol."),
    "gravitino": ("Limnos: Gravitino REST", "What Limnos serves of Gravitino's REST protocol: administration."),
    "lance": ("Limnos: Lance REST", "What Limnos serves of the Lance REST Namespace protocol."),
    "asterix": ("Limnos: SQL++", "AsterixDB's query service and what its clients ask beside it."),
    "admin": ("Limnos: own API", "What no other protocol offers, and what lies at the server's root."),
}
ERRORS: dict[str, Json] = {
    "iceberg": {
        "error": {
            "type": "object", "required": ["message", "type", "code"],
            "properties": {
                "message": {"type": "string"}, "type": {"type": "string"}, "code": {"type": "integer"},
            },
        },
    },
    "gravitino": {
        "code": {"type": "integer"}, "type": {"type": "string"}, "message": {"type": "string"},
        "stack": {"type": "array", "items": {"type": "string"}},
    },
    "lance": {
        "error": {"type": "string"}, "code": {"type": "integer"}, "detail": {"type": "string"}, "instance": {"type": "string"},
    },
    "asterix": {
        "requestID": {"type": "string"}, "status": {"type": "string", "enum": ["fatal", "timeout"]},
        "errors": {
            "type": "array",
            "items": {"type": "object", "properties": {"code": {"type": "integer"}, "msg": {"type": "string"}}},
        },
    },
    "admin": {
        "error": {
            "type": "object", "required": ["code", "message", "request_id"],
            "properties": {
                "code": {"type": "string"}, "message": {"type": "string"}, "request_id": {"type": "string"},
                "decision": {"type": "object", "description": "Why: verdict, and each reason for it."},
            },
        },
    },
}  # fmt: skip
"""The properties of each protocol's error body."""
KEY: Json = {
    "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "format": "uuid"},
    "description": "A UUID of version 7. Sent again under its key, the request is carried out once and answered as the first time.",
}  # fmt: skip
"""The header of requests that may be repeated."""
REQUIRED = {
    "iceberg": ["error"],
    "lance": ["code"],
    "asterix": ["requestID", "status", "errors"],
    "gravitino": ["code", "type", "message"],
    "admin": ["error"],
}
MEANINGS = {
    200: "Done; the body tells the result.",
    204: "Done; there is nothing to tell.",
    304: "The caller has this version already.",
    400: "Malformed: the message says what is wrong and what to do.",
    401: "The credential cannot be verified.",
    403: "Refused: the message names who is asking, or the missing privilege and on what.",
    404: "Not there, as far as the caller may know.",
    405: "Not offered for this object, or not as the server is configured.",
    406: "Not served, or not for what lies there: the message says what to do instead.",
    409: "In conflict with what is there: a name that is taken, a container that is full, a requirement that fails.",
    410: "What comes after the position is not kept any longer: start anew.",
    413: "The body is over the limit.",
    422: "The same key is both set and removed.",
    500: "Something unexpected; after a change was handed to the store: it may have been made.",
    503: "Nothing was changed; come again after Retry-After.",
}


class Known(NamedTuple):
    """What the code of a handler tells: its functions, and the shape of the body it takes."""

    functions: tuple[Callable[..., object], ...]
    body: object | None
    keyed: bool = False
    """An `Idempotency-Key` counts for it."""
    word: str = ""
    """The kind it is about, `{kind}` in its docstring, where one handler is there for several."""


def unwrap(handler: object) -> Known:
    """Look through wrappers: methods, partial, and closures over a `handler` (and over the `shape` of its body)."""
    if isinstance(handler, partial):
        return unwrap(handler.func)
    function = handler.__func__ if isinstance(handler, MethodType) else handler
    if not isinstance(function, FunctionType):
        raise TypeError(f"{handler} is no function")
    inside = inspect.getclosurevars(function).nonlocals
    if "handler" in inside:
        known = unwrap(inside["handler"])
        return Known(known.functions, inside.get("shape", known.body), known.keyed or "plan" in inside, known.word)
    functions = tuple(_with_helpers(function))
    kind = getattr(getattr(handler, "__self__", None), "kind", None)
    return Known(functions, _body_of(functions), word="" if kind is None else kind.word)


def _with_helpers(function: FunctionType, seen: frozenset[str] = frozenset()) -> Iterator[FunctionType]:
    """Yield a handler and the functions to which it hands its request."""
    yield function
    for name in dict.fromkeys(_PASSED_ON.findall(inspect.getsource(function))):
        helper = function.__globals__.get(name)
        if isinstance(helper, FunctionType) and name not in seen and helper is not function:
            yield from _with_helpers(helper, seen | {name})


def _body_of(functions: tuple[FunctionType, ...]) -> object | None:
    for function in functions:
        for name in _BODY.findall(inspect.getsource(function)):
            shape: object = function.__globals__.get(name, dict[str, object])
            return shape
    return None


def parameters_of(route: Route[Handler], known: Known) -> list[Json]:
    """Return the parameters of an operation: segments of its path, then what it reads from the query."""
    found: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(route.path)
    ]
    if known.keyed:
        found.append(KEY)
    asked: dict[str, str] = {}
    for function in known.functions:
        asked |= {name: kind for kind, name in _QUERY.findall(inspect.getsource(function))}
    for name, kind in asked.items():
        found.append({"name": name, "in": "query", "schema": {"type": "boolean" if kind == "_flag" else "string"}})
    return found


def statuses_of(protocol: Protocol, route: Route[Handler], known: Known) -> list[int]:
    """Return the statuses that an operation may answer."""
    text = "".join(inspect.getsource(function) for function in known.functions)
    done = [204] if "no_content()" in text else [200]
    if "Response(304" in text:
        done.append(304)
    if route.operation in protocol.anonymous:
        return [*done, 503] if "health" in route.operation else done
    refused = [400, 401, 403, 404, 500, 503]
    if route.method not in ("GET", "HEAD"):
        refused.append(409)
    if protocol.name != "iceberg":
        refused.append(406 if protocol.name == "lance" else 405)
    refused += [410] if route.operation.endswith("-changes") else []
    refused += [413] if known.body is not None else []
    refused += [422] if "Unprocessable" in text else []
    return [*done, *sorted(refused)]


def operation_of(protocol: Protocol, route: Route[Handler], refs: dict[object, Json]) -> Json:
    """Describe one operation."""
    known = unwrap(route.handler)
    summary = (
        (inspect.getdoc(known.functions[0]) or "").partition("\n\n")[0].replace("\n", " ").replace("{kind}", known.word)
    )
    prefixed = protocol.name != "iceberg" or "{prefix}" in route.path or route.path == "/config"
    told: Json = {
        "operationId": route.operation if prefixed else f"{route.operation}-default-catalog",
        "summary": summary,
        "parameters": parameters_of(route, known),
    }
    if known.body is not None and route.method != "GET":
        optional = any("data.strip()" in inspect.getsource(function) for function in known.functions)
        told["requestBody"] = {"required": not optional, "content": {"application/json": {"schema": refs[known.body]}}}
    if protocol.name == "lance" and any(
        "request.stream(" in inspect.getsource(function) for function in known.functions
    ):
        told["requestBody"] = {
            "required": True,
            "content": {"application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    if route.operation in protocol.anonymous:
        told["security"] = []
    told["responses"] = {
        str(status): {"description": MEANINGS[status]}
        if status < 400 or route.method == "HEAD"
        else {"$ref": f"#/components/responses/{status}"}
        for status in statuses_of(protocol, route, known)
    }
    return told


def _failure(status: int) -> Json:
    told: Json = {"description": MEANINGS[status]}
    if status == 503:
        told["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
    told["content"] = {"application/json": {"schema": {"$ref": REF.format(name="Error")}}}
    return told


def _any_json(shape: type) -> Json:
    """Describe what handlers take apart themselves."""
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
        "info": {"title": title, "description": description, "version": "1"},
        "servers": [{"url": "http://127.0.0.1:8090"}],
        "security": [{"token": []}, {"simple": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "An API token."},
                "simple": {"type": "http", "scheme": "basic", "description": "The user is believed, where the server says so."},
            },
            "responses": {str(status): _failure(status) for status in MEANINGS if status >= 400 and (status != 406 or protocol.name == "lance")},
            "schemas": {**dict(sorted(components.items())), "Error": error},
        },
    }  # fmt: skip


def documents() -> dict[Path, str]:
    """Return each document as it should be."""
    protocols: list[Protocol] = [
        IcebergProtocol(),
        GravitinoProtocol(),
        LanceProtocol(),
        AsterixProtocol(),
        AdminProtocol(),
    ]
    return {
        FOLDER / f"{protocol.name}.json": json.dumps(document_of(protocol), indent=2, ensure_ascii=False) + "\n"
        for protocol in protocols
    }


def main(*, check: bool) -> int:
    """Write the documents, or with `check` only tell which ones are behind; return the exit code."""
    FOLDER.mkdir(exist_ok=True)
    behind = [
        path for path, text in documents().items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in behind:
        print(f"{path.relative_to(ROOT)}: {'behind the code; run `make docs`' if check else 'written'}")
        if not check:
            path.write_text(documents()[path], encoding="utf-8")
    return 1 if check and behind else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
