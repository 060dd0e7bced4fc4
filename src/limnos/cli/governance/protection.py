# SPDX-License-Identifier: Apache-2.0
"""`protect` and `unprotect`: protection of objects against drops."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, KindFlag
from limnos.cli.output import show_done
from limnos.client.errors import ArgumentError, ClientError

if TYPE_CHECKING:
    from limnos.client import Client


def protect(
    path: str,
    /,
    *,
    below: Annotated[bool, Parameter(negative="", help="Also all objects below it, present and future.")] = False,
    kind: KindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Protect an object from being dropped, purged, unregistered or replaced.

    Only the owner of an ancestor can remove the protection.

    Parameters
    ----------
    path
        A catalog, namespace, table or view, as `main.raw.trips`.
    """
    with common.client() as client:
        result = kind or client.objects.kind(path)
        client.protection.set(path, kind=result, below=below)
    more = " with all objects below it" if below else ""
    show_done(
        f"{result} {path} is protected{more}",
        {"protected": path, "kind": result, "below": below},
        output_format=common.output_format,
    )


def unprotect(path: str, /, *, kind: KindFlag = None, common: CommonFlags = DEFAULTS) -> None:
    """Remove an object's protection. You need the ownership of an ancestor.

    Parameters
    ----------
    path
        The protected object, as `main.raw.trips`.
    """
    with common.client() as client:
        result = kind or client.objects.kind(path)
        removed = client.protection.clear(path, kind=result)
        protector = _protector(client, path, kind=result)
    fields = {"unprotected": path, "kind": result, "removed": removed}
    if protector is None:
        text = f"{result} {path} is no longer protected" if removed else f"{result} {path} was not protected"
    else:
        message = (
            f"is no longer protected itself, but {protector}" if removed else f"is not protected itself: {protector}"
        )
        ends = shlex.join(["limnos", "unprotect", protector.name])
        text = f"{result} {path} {message} protects all objects below it: '{ends}' ends that"
        fields["protected_by"] = str(protector)
    show_done(text, fields, output_format=common.output_format)


class _Protector(NamedTuple):
    """An object whose protection covers the objects below it."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def _protector(client: Client, path: str, *, kind: str) -> _Protector | None:
    """Return the object whose protection still covers an object; None without one, or if the server does not say."""
    try:
        protector = client.protection.get(path, kind=kind)
    except (ClientError, ArgumentError):
        return None
    return None if protector is None else _Protector(protector.by.kind, protector.by.name)
