# SPDX-License-Identifier: Apache-2.0
"""Declared kinds: objects in a namespace with a comment, properties and a few fields of their own.

A declaration is all that packages must know about such a kind: its row of the table of kinds, its record, actions,
rules, routes, calls and commands follow from it. A declaration has no functions: a kind that needs one has modules of
its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

import msgspec

from limnos.model.kinds import Kind

WebAddress = Annotated[str, msgspec.Meta(pattern=r"^(https?://\S+)?$", max_length=4_096)]
"""The URL of a page, or an empty text."""

SiblingNames = Annotated[tuple[str, ...], msgspec.Meta(extra={"siblings": True})]
"""Names of objects of the same namespace. The server does not check that they exist, commands do."""


class ObjectFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base class of the own fields of a declared kind.

    Each field has a default and is a text, number, bool, `Literal` or tuple of texts: a type that a flag and JSON both
    have. Its description is the help of the flag. Fields are stored: add some, but never rename one or change its type.
    """


class DashboardFields(ObjectFields, frozen=True):
    """The own fields of a dashboard."""

    url: Annotated[WebAddress, msgspec.Meta(description="URL of its page in a tool for charts.")] = ""
    tables: Annotated[
        SiblingNames, msgspec.Meta(description="Name of a table or view of its namespace that it shows.")
    ] = ()


class DeclaredKind(NamedTuple):
    """A declared kind.

    - `plural`: its objects in URLs, and the client's resource.
    - `create_right`: the privilege on the namespace that creates an object.
    - `about`: what an object is, as help and documents say it.
    - `example`: values of the own fields that tests send.
    - `advised`: a field whose absence the command line notes after a creation; empty without one.
    """

    kind: Kind
    plural: str
    fields: type[ObjectFields]
    create_right: str
    about: str
    example: Mapping[str, object] = MappingProxyType({})
    advised: str = ""


DECLARED: Final = (
    DeclaredKind(
        kind=Kind.DASHBOARD,
        plural="dashboards",
        fields=DashboardFields,
        create_right="CREATE_VIEW",
        about="the page of a tool for charts that shows tables of its namespace.",
        example={"url": "https://charts.example.com/1", "tables": ["t"]},
        advised="url",
    ),
)
"""The declared kinds. A new one needs a number in `kinds` and a line here."""
DECLARED_KINDS: Final[Mapping[Kind, DeclaredKind]] = {each.kind: each for each in DECLARED}
DECLARED_WORDS: Final = frozenset(each.kind.word for each in DECLARED)
"""The words of the declared kinds, in the singular."""
