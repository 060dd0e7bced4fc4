# SPDX-License-Identifier: Apache-2.0
"""Records the client's public methods, the called ones, and whether each step ended as expected.

Run by an interpreter that has the client; imports nothing of Limnos.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator

import gravitino.client

Method = tuple[type, str]


def methods() -> Iterator[Method]:
    """Return every public method that a class of the client's package defines."""
    for module in pkgutil.iter_modules(gravitino.client.__path__, "gravitino.client."):
        client_module = importlib.import_module(module.name)
        for _, each in inspect.getmembers(client_module, inspect.isclass):
            if each.__module__ == client_module.__name__:
                yield from ((each, name) for name, value in vars(each).items() if _is_method(name, value))


def _is_method(name: str, value: object) -> bool:
    return not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, (staticmethod, classmethod)))


class CallRecord:
    """The called methods, and the outcome of each step."""

    def __init__(self) -> None:
        self.known = sorted({_format_method(each) for each in methods()})
        self.called: set[str] = set()
        self.steps: list[dict[str, str]] = []
        for each in list(methods()):
            self._watch(*each)

    def _watch(self, owner: type, name: str) -> None:
        """Record the calls of a method by any caller."""
        attribute = vars(owner)[name]
        wrap = type(attribute) if isinstance(attribute, (staticmethod, classmethod)) else None
        inner = attribute.__func__ if wrap else attribute
        note = functools.partial(self.called.add, _format_method((owner, name)))

        @functools.wraps(inner)
        def call(*args: object, **named: object) -> object:
            note()
            return inner(*args, **named)

        setattr(owner, name, wrap(call) if wrap else call)

    def see(self, who: str, step: str, call: Callable[[], object], *, wants: object = None) -> object:
        """Run a step. `wants`: its result, or the name of its exception; by default any result."""
        try:
            result = call()
        except Exception as error:
            name = type(error).__name__
            self._note(who, step, ok=name == wants, result_text=f"{name}: {error}", wants=wants)
            return None
        self._note(who, step, ok=wants is None or result == wants, result_text=repr(result), wants=wants)
        return result

    def _note(self, who: str, step: str, *, ok: bool, result_text: str, wants: object) -> None:
        outcome = "ok" if ok else "FAILED"
        self.steps.append(
            {"who": who, "step": step, "outcome": outcome, "told": result_text[:500], "wants": repr(wants)}
        )


def _format_method(method: Method) -> str:
    return f"{method[0].__name__}.{method[1]}"
