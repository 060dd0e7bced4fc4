# SPDX-License-Identifier: Apache-2.0
"""`protect` and `unprotect`: protection of objects against drops."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, KindFlag
from limnos.cli.output import show_done


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
    text = f"{result} {path} is no longer protected" if removed else f"{result} {path} was not protected"
    show_done(text, {"unprotected": path, "kind": result, "removed": removed}, output_format=common.output_format)
