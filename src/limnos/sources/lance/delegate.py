"""Calls an implementation of Lance's namespace, whoever wrote it: fields in, fields or bytes out, failures with the protocol's codes.

May import Lance's library, `model` and this room. Knows no HTTP. A method's request is built from the type that the interface gives it, so that what
the protocol adds later needs nothing here.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, Final

from lance_namespace import LanceNamespace, connect
from lance_namespace.errors import LanceNamespaceError
from pydantic import BaseModel, ValidationError

from limnos.model.errors import BadRequest, LimnosError, UnsupportedOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Fields = dict[str, object]
_NOT_THERE: Final = ("not implemented", "not supported")
"""How Lance's own namespaces say that they lack an operation, beside the error that is made for that."""
_INTERNAL: Final = 18


class DelegateRefusal(LimnosError):
    """An implementation refused, with one of the protocol's codes."""

    def __init__(self, message: str, *, number: int) -> None:
        super().__init__(message)
        self.number = number


class NamespaceDelegate:
    """An implementation, and what is asked of it; `first` answers what it has a method for, `rest` all else."""

    def __init__(self, rest: object, first: object | None = None) -> None:
        self._rest, self._first = rest, first

    def call(self, method: str, fields: Fields, *, data: bytes | None = None) -> object:
        """Call a method of the interface; returns fields, a text or bytes. Raises Refused, and `model`'s errors."""
        target = self._first if self._first is not None and hasattr(self._first, method) else self._rest
        try:
            request = _request_of(method, fields, target=target)
            found = getattr(target, method)(request, *([] if data is None else [data]))
        except LimnosError:
            raise
        except LanceNamespaceError as error:
            raise DelegateRefusal(_words(error), number=int(error.code)) from error
        except Exception as error:
            if any(words in str(error).lower() for words in _NOT_THERE):
                raise UnsupportedOperation(f"This namespace has no {method}") from error
            raise DelegateRefusal(f"The namespace failed: {_words(error)}", number=_INTERNAL) from error
        return found.to_dict() if isinstance(found, BaseModel) and hasattr(found, "to_dict") else found


def _words(error: Exception) -> str:
    return str(error).split(", /", 1)[0][:500]


def _request_of(method: str, fields: Fields, *, target: object) -> object:
    """Build a method's request. Raises BadRequest, naming the field that is wrong."""
    shape: Any = typing.get_type_hints(getattr(LanceNamespace, method))["request"]
    try:
        request = shape.from_dict(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadRequest(f"Field {'.'.join(map(str, first['loc'])) or 'of the body'}: {first['msg']}") from error
    return fit_request(request, getattr(target, method))


def fit_request(request: Any, method: Callable[..., object]) -> object:  # noqa: ANN401 - requests are Lance's own types
    """Return a request as a method takes it: Lance's own have some that take plain fields."""
    if typing.get_type_hints(method).get("request") is dict and not isinstance(request, dict):
        return {key: value for key, value in request.to_dict().items() if value is not None}
    return request


def implementation_of(name: str, properties: Mapping[str, str]) -> LanceNamespace:
    """Make an implementation by its name, `dir`, `rest` or `module.Class`. Raises BadRequest."""
    try:
        return connect(name, dict(properties))
    except Exception as error:
        raise BadRequest(
            f"{name} cannot be used as a namespace: {_words(error)}. Name a class of your Python path, and give its properties"
        ) from error
