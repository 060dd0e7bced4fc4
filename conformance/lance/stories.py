# SPDX-License-Identifier: Apache-2.0
"""The stories of each client in each depth group, and the result of every call.

May import this package. It must not know how the server was started.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from conformance.lance.calls import DATABASES, DENIED, SHOWN_NOTHING, SPACES, TABLES, Call
from conformance.lance.clients import Client, NoCall, RequestRefused
from conformance.lance.home import Home, Json
from conformance.lance.operations import NUMBERS

NO_CALL = ("update_field_metadata", "batch_create_table_versions", "batch_commit_tables")
"""Operations that pylance 14 names but does not send; clients that contain its client do not send them either."""
Outcome = Literal["ok", "FAILED", "no call"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One operation by one client in one depth group: the outcome of its calls, and the answer to the first that
    failed.
    """

    operation: str
    client: str
    group: str
    outcome: Outcome
    calls: int
    told: str

    def __str__(self) -> str:
        line = (
            f"{self.outcome:8}{NUMBERS[self.operation]:3} {self.operation:30} {self.client:18} {self.group:20}"
            f" {self.calls} calls"
        )
        return line if self.outcome == "ok" else f"{line}\n           {self.told}"


def told_of(client: Client, outsider: Client, home: Home, *, calls: tuple[Call, ...], group: str) -> list[Result]:
    """Run each row of a story, first as a user without rights; the rows of an operation are one result."""
    problems_by_operation: dict[str, list[str | None]] = {}
    missing: dict[str, str] = {}
    for call in calls:
        try:
            problems_by_operation.setdefault(call.operation, []).extend(_trouble(client, outsider, home, call))
        except NoCall as error:
            missing[call.operation] = str(error)
    return [
        _result(client.name, group, operation, problems, missing)
        for operation, problems in problems_by_operation.items()
    ]


def _result(client: str, group: str, operation: str, problems: list[str | None], missing: dict[str, str]) -> Result:
    wrong = next((each for each in problems if each is not None), None)
    if operation in missing:
        outcome: Outcome = "no call" if operation in NO_CALL else "FAILED"
        return Result(
            operation=operation,
            client=client,
            group=group,
            outcome=outcome,
            calls=0,
            told=" ".join(missing[operation].split())[:200],
        )
    return Result(
        operation=operation,
        client=client,
        group=group,
        outcome="ok" if wrong is None else "FAILED",
        calls=len(problems),
        told=" ".join((wrong or "").split())[:600],
    )


def _trouble(client: Client, outsider: Client, home: Home, call: Call) -> Iterator[str | None]:
    """Yield the problems with the answers to the user without rights and to the one with rights; None for a correct
    one.
    """
    fields, ident = call.fields(home), call.ident(home)
    yield _refusal(outsider, call, ident, fields)
    try:
        answer = client.ask(call.operation, ident, fields=fields, data=call.data)
    except RequestRefused as error:
        yield None if {call.code_for(home), call.unsaid} & set(error.codes) else f"refused with {error.codes}: {error}"
        return
    if call.key:
        home.told[call.key] = answer
    if call.code is not None:
        yield f"was answered and not refused with {call.code}: {answer}"
        return
    try:
        yield None if call.check(answer, home) else f"answered {answer}"
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        yield f"answered {answer}, in which {error!r}"


def _refusal(outsider: Client, call: Call, ident: list[str] | None, fields: Json) -> str | None:
    nothing = call.outsider == SHOWN_NOTHING or (call.operation == "list_namespaces" and not ident)
    try:
        answer = outsider.ask(call.operation, ident, fields=fields, data=call.data)
    except RequestRefused as error:
        return None if call.outsider in error.codes else f"who has no rights was told {error.codes}: {error}"
    lists = [value for value in answer.values() if isinstance(value, list)]
    return None if nothing and lists == [[]] else f"who has no rights was answered {answer}"


def spaces(client: Client, outsider: Client, mark: str, *, depths: range) -> Iterator[Result]:
    """Return namespaces whose identifiers have the given number of names."""
    for depth in depths:
        home = Home(home_of(depth), mark)
        yield from told_of(client, outsider, home, calls=SPACES, group=f"namespaces, depth {depth}")


def databases(client: Client, outsider: Client, mark: str) -> Iterator[Result]:
    """Return namespaces of one name, as databases."""
    yield from told_of(client, outsider, Home((), mark), calls=DATABASES, group="namespaces, depth 1")


def tables(client: Client, outsider: Client, mark: str, *, depths: range, flat: bool = False) -> Iterator[Result]:
    """Return tables whose identifiers have the given number of names. `flat`: a list of all tables has only those
    directly in the catalog.
    """
    for depth in depths:
        home = Home(home_of(depth), mark)
        calls = TABLES if not flat else tuple(_flat(depth))
        yield from told_of(client, outsider, home, calls=calls, group=f"tables, depth {depth}")


def _flat(depth: int) -> Iterator[Call]:
    """Yield the rows of tables for clients whose list of all tables has only those directly in the catalog."""
    for call in TABLES:
        if call.operation != "list_all_tables":
            yield call
        elif depth == 2:
            yield replace(call, outsider=DENIED)


def home_of(depth: int) -> tuple[str, ...]:
    """Return the namespace of objects whose identifiers have the given number of names."""
    return ("lance", "one", "two", "three")[: depth - 1]
