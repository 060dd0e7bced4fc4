# SPDX-License-Identifier: Apache-2.0
"""Each engine as a restricted reader: a row filter and a column mask apply to the user `mona`.

Job: the restricted table, the reads and writes of that user, and what they may show. A read shows the visible rows with
masked values, or is refused with a message that names scan planning by the server. Any other row, count or value in an
answer fails, also if the driver declares a limit. May import the story's words. It must not know any engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from conformance.engines.driver import RESTRICTED
from conformance.engines.drivers.pyiceberg_driver import Engine as Witness
from conformance.engines.remote import CallRefused
from conformance.engines.rows import PLAIN, Row, same
from conformance.engines.story import CLIENT, DENIED, OK, Outcome, Story
from limnos.client import Client
from limnos.client.values import NamedPrincipals
from limnos.model.restrictions import CLOSED_TO

CALLER = "restricted"
USER = "mona"
SPACE, TABLE = ["masked"], "t"
FIRST: list[Row] = [[1, "Oslo-77"], [3, "Lima-99"]]
SECOND: list[Row] = [[2, "Rome-88"]]
VISIBLE: list[Row] = [[1, "xxxx-nn"], [2, "xxxx-nn"]]
SECRETS = ("Oslo", "Lima", "Rome")
READ = RESTRICTED
OLDER = "a restricted reader reads an older snapshot"
COUNT = "a restricted reader counts"
SEARCH = "a restricted reader searches by a masked value"
APPEND, DELETE = "a restricted reader may not append", "a restricted reader may not delete"
READS, WRITES = (READ, OLDER, COUNT, SEARCH), (APPEND, DELETE)


def furnish(client: Client, witnesses: Mapping[str, Witness]) -> str:
    """Create a restricted table in each catalog, in two snapshots, and the user. Returns the user's token.

    The user may otherwise read and write the tables.
    """
    client.users.add(USER)
    client.roles.create("masked")
    client.roles.grant_to_user(USER, ["masked"])
    to = NamedPrincipals(users=(USER,))
    for catalog, witness in witnesses.items():
        space = [catalog, *SPACE]
        client.namespaces.create(space)
        client.roles.allow("masked", ["use_catalog"], on=catalog, kind="catalog")
        client.roles.allow("masked", ["use_schema", "select_table", "modify_table"], on=space, kind="namespace")
        witness.create(SPACE, TABLE)
        for rows in (FIRST, SECOND):
            witness.append(SPACE, TABLE, rows)
        masks = {"city": "mask-alphanum"}
        client.restrictions.set("r", [*space, TABLE], kind="table", filter="id < 3", masks=masks, to=to)
    return client.tokens.create(user=USER).token


def tell(story: Story) -> None:
    """Run the checks of a restricted reader."""
    story.remote.ask("be", CALLER)
    first = story.witness.snapshots(SPACE, TABLE)[0]
    _read(story, READ, lambda: story.remote.ask("read", SPACE, TABLE, ["id", "city"]), VISIBLE)
    _read(story, OLDER, lambda: story.remote.ask("read_at", SPACE, TABLE, first), VISIBLE[:1])
    _read(story, COUNT, lambda: [[story.remote.ask("count", SPACE, TABLE), ""]], [[2, ""]])
    _read(story, SEARCH, lambda: [[story.remote.ask("count", SPACE, TABLE, FIRST[0][1]), ""]], [[0, ""]])
    _write(story, APPEND, lambda: story.remote.ask("append", SPACE, TABLE, [[4, "Bonn"]]))
    _write(story, DELETE, lambda: story.remote.ask("delete", SPACE, TABLE, 1), kind="delete")


def _read(story: Story, name: str, ask: Callable[[], list[Row]], expected: list[Row]) -> None:
    def read() -> str:
        try:
            rows = ask()
        except CallRefused as error:
            return _without_secrets(str(error))
        return "" if same(rows, expected, PLAIN) else f"it shows {rows}"

    story.check(name, read, RESTRICTED)


def _write(story: Story, name: str, ask: Callable[[], object], kind: str = "") -> None:
    known = (CLOSED_TO, *DENIED, "forbidden") if story.remote.is_remote else (CLOSED_TO,)

    def write() -> str:
        try:
            ask()
        except CallRefused as error:
            text = _without_secrets(str(error))
        else:
            text = "not refused"
        problem = "" if any(each.lower() in text.lower() for each in known) else text
        return problem or story.seen(SPACE, TABLE, [*FIRST, *SECOND])

    story.check(name, write, kind)


def _without_secrets(message: str) -> str:
    """Return an error's message; other words if it shows hidden values."""
    secrets = [secret for secret in SECRETS if secret in message]
    return f"the message shows {secrets}" if secrets else message


_BEFORE = (" / ", "Error: ", "Exception: ", "Refused: ")
"""Texts before the part of an error that says what failed."""
BEGIN, END = "<!-- engines: begin -->", "<!-- engines: end -->"


def table(outcomes: Sequence[Outcome], titles: Mapping[str, str]) -> str:
    """Return a table of the engines: whether they read a restricted table, and the message of those that do not."""
    lines = ["| engine | on a disk | in an object store | what it says otherwise |", "|---|---|---|---|"]
    for engine in dict.fromkeys(each.engine for each in outcomes):
        own = {each.check: each for each in outcomes if each.engine == engine}
        disk, store = (_cell([own.get(f"{name}{where}") for name in READS]) for where in ("", " (S3)"))
        read = own.get(READ)
        message = read.told if read is not None and read.result == CLIENT else ""
        lines.append(f"| {titles.get(engine, engine)} | {disk} | {store} | {_shortened(message)} |")
    return "\n".join(lines)


def _cell(reads: Sequence[Outcome | None]) -> str:
    results = {each.result for each in reads if each is not None}
    if not results:
        return "not run"
    return "reads" if results == {OK} else "refused" if results == {CLIENT} else "**failed**"


def _shortened(message: str) -> str:
    """Return the part of a message around the advice, as code for a table; empty for none."""
    if not message:
        return ""
    at = message.find(CLOSED_TO)
    if at < 0:
        return f"`{message.partition(' / ')[0].partition(': ')[2]}`"
    start = max(message.rfind(mark, 0, at) + len(mark) if mark in message[:at] else 0 for mark in _BEFORE)
    return f"`{message[start : at + len(CLOSED_TO)]}`"


def in_page(page: str, outcomes: Sequence[Outcome], titles: Mapping[str, str]) -> str:
    """Replace the table in docs/guides/restrictions.md by that of a run."""
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{table(outcomes, titles)}\n\n{END}{after}"
