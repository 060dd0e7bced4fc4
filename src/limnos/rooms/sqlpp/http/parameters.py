# SPDX-License-Identifier: Apache-2.0
"""The parameters of a request to the query service: in the query string, as a form or as JSON.

Must not know statements. The first value of a repeated parameter counts, except for `dataverse`, whose values are the
parts of one name. In JSON a dataverse is a string for one part, or an array for several parts; a string is never split.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, cast

import msgspec

from limnos.http.request import Request
from limnos.http.routing import SHORT_BODY_BYTES
from limnos.model.errors import WrongMediaType
from limnos.names.canonical import decode as decode_canonical
from limnos.names.jsonform import decode as decode_levels
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.errors import compilation, shorten, visible
from limnos.rooms.sqlpp.language.lossless_adm import lossless_adm_value
from limnos.rooms.sqlpp.language.offloaded_work import PARAMETERS, parameters_of
from limnos.rooms.sqlpp.language.parameters import (
    BAD_JSON,
    BAD_VALUE,
    EncodedParameter,
    check_values,
    form_parameters,
    json_parameters,
)
from limnos.rooms.sqlpp.language.result_text import ResultFormat
from limnos.rooms.sqlpp.language.values.model import Value
from limnos.rooms.sqlpp.services.execution.queries import process_do
from limnos.rooms.sqlpp.services.requests.errors import check_dataverse
from limnos.rooms.sqlpp.services.requests.options import ORDERED_FIELDS
from limnos.services.request.context import Context

NO_STATEMENT: Final = 40
MODES: Final = ("immediate", "deferred", "async")
"""Where results are returned: in the response; or under a handle, which the response contains when they are complete
(`deferred`) or immediately (`async`).
"""
PLAN_FORMATS: Final = ("json", "string")
FORMATS: Final[Mapping[str, ResultFormat]] = {
    "json": "json",
    "clean-json": "json",
    "application/json": "json",
    "lossless-json": "lossless-json",
    "lossless-adm": "lossless-adm",
    "adm": "adm",
    "application/x-adm": "adm",
    "csv": "csv",
    "text/csv": "csv",
}
_PLANS: Final = ("logical-plan", "optimized-logical-plan", "expression-tree", "rewritten-expression-tree", "job")
JDBC: Final = "jdbc"
CLIENT_TYPES: Final = ("asterix", JDBC)
_FIXED_WORDS: Final = {"profile": ("off",), "hyracks-job-format": ("json", "dot")}
FORM: Final = b"application/x-www-form-urlencoded"
GET_PARAMETERS: Final = (
    "format",
    "signature",
    "multi-statement",
    "max-warnings",
    "max-result-reads",
    "sql-compat",
    ORDERED_FIELDS,
    *_PLANS,
    "client-type",
    *_FIXED_WORDS,
)
"""Parameters of a query string besides those of the statement."""
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ns|us|µs|ms|s|m|h)", re.ASCII | re.IGNORECASE)
_UNITS: Final = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_INT_MAX: Final = 1 << 63


class QueryRequest(NamedTuple):
    """A parsed request to the query service: the statement text, the result format, and the options of execution."""

    statement: str
    mode: str
    dataverse: Levels | None
    pretty: bool
    read_only: bool
    compile_only: bool
    plan_format: str
    timeout_ms: int | None
    client_context_id: str | None
    parameters: Mapping[str | int, Value]
    format: ResultFormat = "json"
    signature: bool = True
    multi_statement: bool = True
    max_warnings: int | None = None
    sql_compat: bool = False
    client_type: str = "asterix"
    reads_max: int | None = None
    ordered_fields: bool = True

    @property
    def is_tabular(self) -> bool:
        """Whether the client is AsterixDB's JDBC driver, which needs the names and types of the results' fields."""
        return self.client_type == JDBC

    @property
    def is_read_once(self) -> bool:
        """Whether stored results are deleted after the first read. The JDBC driver reads each result once and deletes
        none.
        """
        return self.reads_max == 1 or (self.reads_max is None and self.is_tabular)


class RequestParameters:
    """The parameters of a request in any encoding: values by name. The values are JSON values if the body is JSON."""

    def __init__(self, values: Mapping[str, list[object]]) -> None:
        self._values = values

    def first(self, name: str) -> object:
        """Return the first value of a parameter, or None."""
        values = self._values.get(name)
        return values[0] if values else None

    def filter_present(self, names: Iterable[str]) -> list[str]:
        """Return the elements of `names` that are parameters of the request."""
        return [name for name in names if name in self._values]

    def text(self, name: str) -> str | None:
        """Return the first value as a string, or None. Raises SqlppError for an array or an object."""
        values = self._values.get(name)
        value = values[0] if values else None
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return msgspec.json.encode(value).decode()
        raise bad_value(name, value)

    def word(self, name: str, words: tuple[str, ...]) -> str:
        """Return a parameter whose value is one of several keywords, in lower case.

        `words` lists the keywords; the first is the default. Raises SqlppError for any other value.
        """
        if name not in self._values:
            return words[0]
        text = self.text(name)
        if not text:
            return words[0]
        if text.lower() not in words:
            raise bad_value(name, text)
        return text.lower()

    def flag(self, name: str, *, unset: bool = False) -> bool:
        """Return a boolean parameter; `unset` if it is absent. Raises SqlppError for a value that is not a boolean."""
        if name not in self._values:
            return unset
        return self.word(name, ("true", "false") if unset else ("false", "true")) == "true"

    def integer(self, name: str, *, least: int = 0) -> int | None:
        """Return an integer parameter; None if it is absent. Raises SqlppError for other values and for
        integers below `least`.
        """
        text = self.text(name)
        if text is None:
            return None
        if not re.fullmatch(r"\d{1,18}", text, re.ASCII) or int(text) < least:
            raise bad_value(name, text)
        return int(text)

    def name(self, parameter: str, *, canonical: bool = False) -> Levels | None:
        """Return the name of a dataverse as its parts; None if the parameter is absent or null.

        With `canonical`, a string is a canonical name such as `a.b`, as stored in the dataverse `Metadata`. Raises
        SqlppError for an invalid name.
        """
        values = self._values.get(parameter)
        if canonical and values and isinstance(values[0], str):
            values = list(decode_canonical(values[0]))
        if not values or values == [None]:
            return None
        value = values[0] if len(values) == 1 else values
        parts = (value,) if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)) or not parts or not all(isinstance(part, str) for part in parts):
            raise bad_value(parameter, value)
        check_dataverse(tuple(cast("list[str]", parts)), None)
        return decode_levels(list(parts))

    def parameters(self, read: Callable[[object], Value]) -> dict[str | int, Value]:
        """Return the statement's parameters: named ones from `$x` by name, positional ones from `args` by position from
        1.

        `read` converts a decoded JSON value to a SQL++ value. Raises SqlppError if a value is invalid, if there
        are too many values, or if `args` is not an array.
        """
        parameters: dict[str | int, Value] = {}
        names = [name for name in self._values if name.startswith("$") and len(name) > 1]
        self._check([*names, "args"])
        for name in names:
            parameters[name[1:]] = self._value(name, read)
        if self.first("args") is not None:
            arguments = self._value("args", read)
            if not isinstance(arguments, tuple):
                raise bad_value("args", self.first("args"))
            parameters |= dict(enumerate(arguments, 1))
        return parameters

    def _check(self, names: list[str]) -> None:
        """Raise SqlppError for too many values in these parameters. No-op for a JSON body, which the parser checks."""

    def _value(self, name: str, read: Callable[[object], Value]) -> Value:
        try:
            return read(self._json(name))
        except ValueError:
            raise bad_value(name, self.first(name)) from None
        except RecursionError:
            raise bad_value(name, "it is nested too deeply; make it flatter") from None

    def _json(self, name: str) -> object:
        """Return the decoded JSON value of a parameter. Raises SqlppError for a form's value that is not JSON."""
        return self.first(name)


class FormParameters(RequestParameters):
    """Parameters in a query string or a form: all are strings; those of statements are encoded as JSON."""

    def _check(self, names: list[str]) -> None:
        texts = [str(each) for each in map(self.first, names) if each is not None]
        check_values(each.encode() for each in texts if not each.lstrip().startswith('"'))

    def _json(self, name: str) -> object:
        text = cast("str", self.first(name))
        try:
            return cast("object", msgspec.json.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise SqlppError(BAD_JSON, f"Unable to process JSON content in request: parameter {name}") from None


def bad_value(name: str, value: object) -> SqlppError:
    """Build the error for a parameter with an invalid value."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return SqlppError(BAD_VALUE, f"Invalid value for parameter '{visible(shorten(name))}': {visible(shorten(text))}")


def value_of(document: object) -> Value:
    """Return the SQL++ value of a decoded JSON value. An integer too large for a bigint becomes a double."""
    if isinstance(document, dict):
        return {str(name): value_of(item) for name, item in document.items()}
    if isinstance(document, list):
        return tuple(value_of(item) for item in document)
    if type(document) is int and not -_INT_MAX <= document < _INT_MAX:
        return float(document)
    return cast("Value", document)


async def request_parameters_of(request: Request, ctx: Context) -> RequestParameters:
    """Parse the parameters of a request. A body over SHORT_BODY_BYTES is parsed in a worker process.

    Raises SqlppError for a malformed body, WrongMediaType, TooLarge, ServiceUnavailable if no worker process is free.
    """
    if request.method in ("GET", "HEAD"):
        return FormParameters(_by_name(form_parameters(request.query_string)))
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    data = await request.body()
    is_form = kind == FORM or (not kind and not data.lstrip().startswith(b"{"))
    if not is_form and kind and not kind.endswith(b"json"):
        raise WrongMediaType(
            "Send statements as application/json or as application/x-www-form-urlencoded, with that Content-Type"
        )
    if len(data) > SHORT_BODY_BYTES:
        answer = await process_do(ctx, PARAMETERS, data, b"form" if is_form else b"json")
        encoded = list(parameters_of(answer[1]))
    else:
        encoded = form_parameters(data) if is_form else json_parameters(data)
    return FormParameters(_by_name(encoded)) if is_form else RequestParameters(_by_name(encoded))


def _by_name(encoded: list[EncodedParameter]) -> dict[str, list[object]]:
    """Group encoded parameters by name, each with its decoded values in order of occurrence. Raises SqlppError for
    invalid JSON.
    """
    values: dict[str, list[object]] = {}
    try:
        for name, text, is_text in encoded:
            values.setdefault(name, []).append(text if is_text else msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SqlppError(BAD_JSON, "Unable to process JSON content in request") from None
    return values


def query_request_of(sent: RequestParameters, *, reads: bool, accept: str = "") -> QueryRequest:
    """Build a `QueryRequest` from request parameters.

    `reads`: whether the HTTP method allows only read-only statements. `accept`: the `Accept` header, which selects the
    format if no parameter does. Raises SqlppError for an invalid parameter.
    """
    statement = sent.text("statement")
    if not statement or not statement.strip():
        raise SqlppError(NO_STATEMENT, "No statement provided")
    _check_unsupported(sent)
    format_ = _format(sent, accept)
    client_type = sent.word("client-type", CLIENT_TYPES)
    return QueryRequest(
        statement=statement,
        mode=sent.word("mode", MODES),
        dataverse=sent.name("dataverse", canonical=client_type == JDBC),
        pretty=sent.flag("pretty"),
        read_only=reads or sent.flag("readonly"),
        compile_only=sent.flag("compile-only"),
        plan_format=sent.word("plan-format", PLAN_FORMATS),
        timeout_ms=_duration(sent.text("timeout")),
        client_context_id=sent.text("client_context_id"),
        parameters=sent.parameters(lossless_adm_value if format_ == "lossless-adm" else value_of),
        format=format_,
        signature=sent.flag("signature", unset=True),
        multi_statement=sent.flag("multi-statement", unset=True),
        max_warnings=sent.integer("max-warnings"),
        sql_compat=sent.flag("sql-compat"),
        client_type=client_type,
        reads_max=sent.integer("max-result-reads", least=1),
        ordered_fields=sent.flag(ORDERED_FIELDS, unset=True),
    )


def _format(sent: RequestParameters, accept: str) -> ResultFormat:
    """Return the result format, from the parameter `format` or else the `Accept` header. Raises SqlppError for an
    unknown format in the parameter.
    """
    text = sent.text("format")
    if text:
        known_format = _format_of(text)
        if known_format is None:
            raise bad_value("format", text)
        return known_format
    return next(filter(None, map(_format_of, accept.split(","))), "json")


def _format_of(text: str) -> ResultFormat | None:
    """Return the result format for a name (`json`) or a media type; None for an unknown one."""
    name, *options = (part.strip().lower() for part in text.split(";"))
    known_format = FORMATS.get(name)
    if known_format == "json":
        lossless: ResultFormat = "lossless-adm" if "lossless-adm=true" in options else known_format
        return "lossless-json" if "lossless=true" in options else lossless
    return "csv-header" if known_format == "csv" and "header=present" in options else known_format


def _check_unsupported(sent: RequestParameters) -> None:
    """Check that AsterixDB's parameters for features that this service lacks have their default values. Raises
    SqlppError otherwise.
    """
    for name in sent.filter_present(_PLANS):
        if sent.flag(name):
            raise compilation(f"The parameter {name} is not supported: use EXPLAIN")
    for name in sent.filter_present(_FIXED_WORDS):
        sent.word(name, _FIXED_WORDS[name])


def _duration(text: str | None) -> int | None:
    """Parse a duration such as `10s`, `500ms` or `2m` into milliseconds. Raises SqlppError for any other string, also
    for a number without unit.
    """
    if not text:
        return None
    match = _DURATION.fullmatch(text.strip())
    milliseconds = 0.0 if match is None else float(match[1]) * _UNITS[match[2].lower()]
    if milliseconds <= 0:
        raise bad_value("timeout", text)
    return max(1, int(milliseconds))
