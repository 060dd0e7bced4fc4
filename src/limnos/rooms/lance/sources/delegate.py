# SPDX-License-Identifier: Apache-2.0
"""Calls an implementation of the Lance Namespace interface: requests are JSON fields, results are JSON fields or bytes,
and errors have the protocol's codes.

Must not know HTTP. A method's request is built from its type in the interface, so additions to the protocol need no
change here.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

from lance_namespace import LanceNamespace, connect
from lance_namespace.errors import LanceNamespaceError
from pydantic import BaseModel, ValidationError

from limnos.model.errors import BadRequest, LimnosError, UnsupportedOperation

Fields = dict[str, object]
_NOT_THERE: Final = ("not implemented", "not supported")
"""Parts of error messages by which Lance's own namespaces report a missing operation, instead of the proper error."""
_INTERNAL: Final = 18


class DelegateRefusal(LimnosError):
    """Raised if an implementation refused a request, with an error code of the protocol."""

    def __init__(self, message: str, *, number: int) -> None:
        super().__init__(message)
        self.number = number


class NamespaceDelegate:
    """One or two implementations: `first` handles the methods that it implements, `rest` all others."""

    def __init__(self, rest: object, first: object | None = None) -> None:
        self._rest, self._first = rest, first

    def call(self, method: str, fields: Fields, *, data: bytes | None = None) -> object:
        """Call a method of the interface. Returns the response's JSON fields, a string or bytes.

        Raises DelegateRefusal, UnsupportedOperation if the method is missing, BadRequest for a wrong field, and other
        errors of `model`.
        """
        target = self._first if self._first is not None and hasattr(self._first, method) else self._rest
        try:
            request = _request_of(method, fields, target=target)
            result = getattr(target, method)(request, *([] if data is None else [data]))
        except LimnosError:
            raise
        except LanceNamespaceError as error:
            raise DelegateRefusal(_words(error), number=int(error.code)) from error
        except Exception as error:
            if any(words in str(error).lower() for words in _NOT_THERE):
                raise UnsupportedOperation(f"This namespace has no {method}") from error
            raise DelegateRefusal(f"The namespace failed: {_words(error)}", number=_INTERNAL) from error
        return result.to_dict() if isinstance(result, BaseModel) and hasattr(result, "to_dict") else result


def _words(error: Exception) -> str:
    return str(error).split(", /", 1)[0][:500]


def _request_of(method: str, fields: Fields, *, target: object) -> object:
    """Build a method's request. Raises BadRequest, whose message names the wrong field."""
    shape: Any = typing.get_type_hints(getattr(LanceNamespace, method))["request"]
    try:
        request = shape.from_dict(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadRequest(f"Field {'.'.join(map(str, first['loc'])) or 'of the body'}: {first['msg']}") from error
    return fit_request(request, getattr(target, method))


def fit_request(request: Any, method: Callable[..., object]) -> object:  # noqa: ANN401 - requests are Lance's own types
    """Convert a request model to the type that a method takes: some methods of Lance's implementations take a plain
    dict.
    """
    if typing.get_type_hints(method).get("request") is dict and not isinstance(request, dict):
        return {key: value for key, value in request.to_dict().items() if value is not None}
    return request


def implementation_of(name: str, properties: Mapping[str, str]) -> LanceNamespace:
    """Create an implementation by its name: `dir`, `rest` or `module.Class`. Raises BadRequest for an unknown name or
    invalid properties.
    """
    try:
        return connect(name, dict(properties))
    except Exception as error:
        raise BadRequest(
            f"{name} cannot be used as a namespace: {_words(error)}. Name a class on your Python path, and give its"
            " properties"
        ) from error
