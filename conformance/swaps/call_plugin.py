# SPDX-License-Identifier: Apache-2.0
"""A plugin of mypy that collects each call with the signature that mypy infers for the called function."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mypy.nodes import CallExpr
from mypy.plugin import FunctionSigContext, MethodSigContext, Plugin
from mypy.types import CallableType


class SignedCall(NamedTuple):
    """A call in a file, and the signature of the called function; of a method without `self`."""

    file: str
    name: str
    call: CallExpr
    signature: CallableType


COLLECTED: list[SignedCall] = []
"""The calls of the functions of the chosen package since the list was cleared, some of them twice."""
CHOSEN = {"limnos"}
"""The package whose functions count."""


class CallPlugin(Plugin):
    """Collects calls and changes nothing."""

    def get_function_signature_hook(self, fullname: str) -> Callable[[FunctionSigContext], CallableType] | None:
        """Collect the calls of a function, or of a class."""
        return self._hook(fullname)

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], CallableType] | None:
        """Collect the calls of a method."""
        return self._hook(fullname)

    def _hook(self, fullname: str) -> Callable[[FunctionSigContext | MethodSigContext], CallableType] | None:
        if fullname.partition(".")[0] not in CHOSEN:
            return None

        def collect(context: FunctionSigContext | MethodSigContext) -> CallableType:
            if isinstance(context.context, CallExpr):
                COLLECTED.append(SignedCall(context.api.path, fullname, context.context, context.default_signature))
            return context.default_signature

        return collect


def plugin(version: str) -> type[Plugin]:
    """Return the plugin, as mypy demands it of a module."""
    return CallPlugin
