# SPDX-License-Identifier: Apache-2.0
"""`restriction set | show | remove`: row filters and column masks of tables.

The server parses filters and masks.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Annotated

from cyclopts import App, Parameter

from limnos.cli.common import DEFAULTS, CommonFlags, KindFlag
from limnos.cli.failures import UsageError
from limnos.cli.output import Row, show_done, show_rows
from limnos.client.values import NamedPrincipals, ReadRestriction
from limnos.model.row_filter_sql import sql_of

app = App(name="restriction")
_WORDS = ("user", "group", "role")
PrincipalWords = Annotated[
    tuple[str, ...], Parameter(negative=(), help="As role:auditors, group:finance or user:ana; may be repeated.")
]


@app.command(name="set")
def set_(
    name: str,
    path: str,
    /,
    *,
    filter: str | None = None,
    mask: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    except_: Annotated[PrincipalWords, Parameter(name="--except")] = (),
    to: PrincipalWords = (),
    kind: KindFlag = None,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Restrict the rows and columns that users read of a table, or of all tables in a namespace.

    It applies to all users, or to the principals in --to; but not to the principals in --except, nor to owners of the
    object or of an ancestor.

    Parameters
    ----------
    name
        The restriction's name. An existing one is replaced.
    path
        A table or namespace, as `main.sales.orders`.
    filter
        The rows that users may read, as "region = 'EU' and amount < 100".
    mask
        COLUMN=ACTION, as ssn=show-last-4; may be repeated.
    """
    with common.client() as client:
        result = kind or client.objects.kind(path)
        client.restrictions.set(
            name,
            path,
            kind=result,
            filter=filter,
            masks=_masks(mask),
            to=_parse_principals(to),
            unless=_parse_principals(except_),
        )
    show_done(
        f"{result} {path} is restricted by {name}",
        {"restriction": name, "on": path, "kind": result},
        output_format=common.output_format,
    )


@app.command
def show(path: str, /, *, kind: KindFlag = None, common: CommonFlags = DEFAULTS) -> None:
    """Show the restrictions of a table or namespace, including the restrictions of its parent namespaces.

    Parameters
    ----------
    path
        A table or namespace, as `main.sales.orders`.
    """
    with common.client() as client:
        restrictions = client.restrictions.list(path, kind=kind or client.objects.kind(path))
    show_rows(
        [_row(each) for each in restrictions],
        ["name", "on", "filter", "masks", "to", "except"],
        output_format=common.output_format,
        empty="no restrictions",
    )


@app.command
def remove(name: str, path: str, /, *, kind: KindFlag = None, common: CommonFlags = DEFAULTS) -> None:
    """Remove a restriction from its object.

    Parameters
    ----------
    name
        The restriction's name, as `limnos show restriction` shows it.
    path
        The table or namespace, as `main.sales.orders`.
    """
    with common.client() as client:
        result = kind or client.objects.kind(path)
        removed = client.restrictions.remove(name, path, kind=result)
    text = (
        f"{result} {path} is no longer restricted by {name}"
        if removed
        else f"{result} {path} had no restriction {name}"
    )
    show_done(text, {"restriction": name, "on": path, "removed": removed}, output_format=common.output_format)


def _masks(pairs: Iterable[str]) -> dict[str, str]:
    results: dict[str, str] = {}
    for pair in pairs:
        column, sign, action = pair.rpartition("=")
        if not sign or not column:
            raise UsageError(f"'{pair}' is not COLUMN=ACTION", hint="write for example --mask ssn=show-last-4")
        results[column] = action
    return results


def _parse_principals(words: Iterable[str]) -> NamedPrincipals:
    results: dict[str, list[str]] = {word: [] for word in _WORDS}
    for each in words:
        word, sign, name = each.partition(":")
        if word not in results or not sign or not name:
            raise UsageError(
                f"'{each}' does not say whether it is a user, a group or a role",
                hint=(
                    f"write {shlex.quote(f'user:{each}')}, {shlex.quote(f'group:{each}')} or"
                    f" {shlex.quote(f'role:{each}')}"
                ),
            )
        results[word].append(name)
    users, groups, roles = (tuple(results[word]) for word in _WORDS)
    return NamedPrincipals(users, groups, roles)


def _row(restriction: ReadRestriction) -> Row:
    return {
        "name": restriction.name,
        "on": restriction.on.name,
        "filter": _filter_text(restriction),
        "masks": ", ".join(f"{column}={action}" for column, action in restriction.masks.items()) or None,
        "to": _words(restriction.to) or "everybody",
        "except": _words(restriction.unless) or None,
        "set_by": restriction.set_by,
        "set_at": restriction.set_at,
    }


def _filter_text(restriction: ReadRestriction) -> str | None:
    if restriction.denies:
        return f"denies {', '.join(restriction.denies)}"
    return None if restriction.filter is None else sql_of(restriction.filter)


def _words(named: NamedPrincipals) -> str:
    pairs = zip(_WORDS, (named.users, named.groups, named.roles), strict=True)
    return ", ".join(f"{word}:{name}" for word, names in pairs for name in names)
