# SPDX-License-Identifier: Apache-2.0
"""`restriction set | show | remove`: row filters and column masks of tables.

The server parses filters and masks.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import App, Parameter

from limnos.cli.command_line import typed_tokens
from limnos.cli.common import DEFAULTS, CommonFlags, KindFlag, YesFlag, confirm
from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.identity.principals import find_holder
from limnos.cli.output import Row, show_done, show_rows
from limnos.cli.sentences import quote_command
from limnos.client import ArgumentError, ClientError, NotFoundError
from limnos.client.values import NamedPrincipals, ReadRestriction
from limnos.model.row_filter_sql import sql_of
from limnos.names import display
from limnos.names.errors import InvalidName

if TYPE_CHECKING:
    from limnos.client import Client

app = App(name="restriction")
_WORDS = ("user", "group", "role")
Words: TypeAlias = tuple[str, ...]
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
        COLUMN=ACTION, as ssn=show-last-4; may be repeated. Actions: replace-with-null, mask-to-fixed-value,
        mask-alphanum, show-first-4, show-last-4, truncate-to-year, truncate-to-month, sha-256-global,
        sha-256-query-local.
    """
    if filter is None and not mask:
        principals = [
            word for flag, words in (("--to", to), ("--except", except_)) for each in words for word in (flag, each)
        ]
        whole = _complete_command(name, path, kind=kind, to=to, except_=except_, common=common)
        if whole is not None:
            raise UsageError("a restriction is replaced as a whole: name all that it has, and the change", hint=whole)
        typed = shlex.join(["limnos", "create", "restriction", name, path, *principals])
        raise UsageError(
            "a restriction has a filter of rows, masks of columns, or both",
            hint=f"'{typed} --filter CONDITION', or '{typed} --mask COLUMN=ACTION'",
        )
    with common.client() as client:
        _require_kinds(client, (*to, *except_))
        result = kind or client.objects.kind(path)
        former = _own_restrictions(client, path, kind=result).get(name)
        client.restrictions.set(
            name,
            path,
            kind=result,
            filter=filter,
            masks=_masks(mask),
            to=_parse_principals(to),
            unless=_parse_principals(except_),
        )
    lost = [] if former is None else _lost_terms(former, filter=filter, masks=_masks(mask), to=to, except_=except_)
    replaced_fields = {} if former is None else {"replaced": _row(former), "lost": lost}
    text = f"; the former {name} is replaced: {'; '.join(lost)}" if lost else ""
    show_done(
        f"{result} {path} is restricted by {name}{text}",
        {"restriction": name, "on": path, "kind": result, **replaced_fields},
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
        result = kind or client.objects.kind(path)
        restrictions = client.restrictions.list(path, kind=result)
    below = "; its tables may have restrictions of their own" if result == "namespace" else ""
    show_rows(
        [_row(each) for each in restrictions],
        ["name", "on", "filter", "masks", "to", "except"],
        output_format=common.output_format,
        empty=f"no restrictions{below}",
    )


@app.command
def remove(
    name: str, path: str, /, *, kind: KindFlag = None, yes: YesFlag = False, common: CommonFlags = DEFAULTS
) -> None:
    """Remove a restriction from its object: readers see the rows and values that it hid.

    Parameters
    ----------
    name
        The restriction's name, as `limnos show restriction` shows it.
    path
        The table or namespace, as `main.sales.orders`.
    """
    confirm(f"Remove restriction {name} from {path}, so that readers see what it hides?", yes=yes)
    with common.client() as client:
        result = kind or client.objects.kind(path)
        if not client.restrictions.remove(name, path, kind=result):
            raise _no_restriction(name, path, kind=result, known=_own_restrictions(client, path, kind=result))
    text = f"{result} {path} is no longer restricted by {name}"
    show_done(text, {"restriction": name, "on": path, "removed": True}, output_format=common.output_format)


def _complete_command(
    name: str, path: str, *, kind: str | None, to: Words, except_: Words, common: CommonFlags
) -> str | None:
    """Return the command that changes whom an existing restriction applies to and keeps its other terms; None if there
    is no such restriction, or the caller may not list it. Exceptions are added to those that it has.
    """
    try:
        with common.client() as client:
            match = kind or client.objects.kind(path)
            former = _own_restrictions(client, path, kind=match).get(name)
    except (ClientError, StoppedError, ArgumentError, InvalidName):
        return None
    if former is None:
        return None
    words = ["set", "restriction", name, path, *(["--kind", kind] if kind else [])]
    if former.filter is not None:
        words += ["--filter", sql_of(former.filter)]
    for column, action in former.masks.items():
        words += ["--mask", f"{column}={action}"]
    exceptions = dict.fromkeys((*_word_list(former.unless), *except_))
    for flag, holders in (("--to", to or _word_list(former.to)), ("--except", exceptions)):
        words += [word for each in holders for word in (flag, each)]
    return quote_command(words)


def _own_restrictions(client: Client, path: str, *, kind: str) -> dict[str, ReadRestriction]:
    """Return the restrictions that are set on an object itself, by name; none if the caller may not list them."""
    try:
        restrictions = client.restrictions.list(path, kind=kind)
    except ClientError:
        return {}
    target = (kind, display.render(display.parse(path)))
    return {each.name: each for each in restrictions if (each.on.kind, each.on.name) == target and not each.denies}


def _lost_terms(
    former: ReadRestriction, *, filter: str | None, masks: Mapping[str, str], to: Words, except_: Words
) -> list[str]:
    """Return the terms of a replaced restriction that the new one has not, in words."""
    lost: list[str] = []
    text = None if former.filter is None else sql_of(former.filter)
    if text is not None and "".join((filter or "").split()) != "".join(text.split()):
        lost.append(f"its filter ({text}) is gone" if filter is None else f"its filter was {text}")
    for column, action in former.masks.items():
        if masks.get(column) != action:
            lost.append(f"its mask {column}={action} is gone")
    if {*_word_list(former.to)} != {*to}:
        lost.append(f"it applied to {_words(former.to) or 'everybody'}")
    if {*_word_list(former.unless)} != {*except_}:
        lost.append(f"it excepted {_words(former.unless) or 'no user'}")
    return lost


def _no_restriction(name: str, path: str, *, kind: str, known: Mapping[str, ReadRestriction]) -> NotFoundError:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    rest = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(sorted(known))}" if known else ""
    return NotFoundError(f"{kind} {path} has no restriction '{name}'{rest}", status=404, code="not-found")


def _masks(pairs: Iterable[str]) -> dict[str, str]:
    results: dict[str, str] = {}
    for pair in pairs:
        column, sign, action = pair.rpartition("=")
        if not sign or not column:
            example = shlex.quote(f"{pair.strip('=') or 'ssn'}=show-last-4")
            raise UsageError(f"'{pair}' is not COLUMN=ACTION", hint=f"write for example --mask {example}")
        results[column] = action
    return results


def _require_kinds(client: Client, words: Iterable[str]) -> None:
    """Raise UsageError for a name without a kind that one user, group or role alone has, with the kind."""
    for each in words:
        if ":" in each:
            continue
        try:
            holder = find_holder(client, each)
        except (UsageError, ClientError):
            return
        again = [
            token
            if token not in {each, f"--to={each}", f"--except={each}"}
            else f"{token[: -len(each)]}{holder.kind}:{each}"
            for token in typed_tokens.get()
        ]
        if again[:2] == ["restriction", "set"]:
            again = ["set", "restriction", *again[2:]]
        raise UsageError(f"'{each}' does not say that it is a {holder.kind}", hint=quote_command(again))


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
    return ", ".join(_word_list(named))


def _word_list(named: NamedPrincipals) -> list[str]:
    pairs = zip(_WORDS, (named.users, named.groups, named.roles), strict=True)
    return [f"{word}:{name}" for word, names in pairs for name in names]
