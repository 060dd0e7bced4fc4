# SPDX-License-Identifier: Apache-2.0
"""The permission matrix: the policy's decisions as a readable text that tests compare.

Regenerate it after a change of the policy, and review the difference: `python -m tests.access.matrix`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from limnos.access.actions import Action
from limnos.access.decide import decide
from limnos.model.kinds import Kind
from limnos.model.principals import Subject
from limnos.model.privileges import BINDS, Privilege
from tests.access.world import GROUP, INNER, LAKE, MAIN, OUTER, ROLE, TARGET, TEMPLATE, USER, chain_for, role

FILE = Path(__file__).with_name("permission_matrix.txt")

Rules = frozenset[tuple[Privilege, int]]
USE_CATALOG: Rules = frozenset({(Privilege.USE_CATALOG, LAKE)})
USE: Rules = USE_CATALOG | {(Privilege.USE_SCHEMA, LAKE)}
ALL: Rules = frozenset((p, LAKE) for p in Privilege)
LEVELS = {"m": LAKE, "c": MAIN, "o": OUTER, "i": INNER, "t": TARGET}


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A column of the matrix: a caller with certain privileges."""

    text: str
    owns: int | None = None
    allow: Rules = frozenset()
    deny: Rules = frozenset()
    group_owns: bool = False
    member: bool = True
    admin: bool = False
    itself: bool = False

    def may(self, action: Action, kind: Kind) -> bool:
        """Decide the action on the world's object of a kind."""
        own = {Kind.USER: USER, Kind.GROUP: GROUP, Kind.ROLE: ROLE}.get(kind, TARGET) if self.itself else TARGET
        chain = chain_for(kind, own)
        owned = chain[0].id if self.owns == TARGET else self.owns
        roles = (role(self.allow, self.deny),) if self.allow or self.deny or self.itself else ()
        subject = Subject.of(
            USER,
            "u",
            groups=(GROUP,),
            group_names=("g",),
            roles=roles,
            service_admin=self.admin,
            member=self.member,
        )
        owner = GROUP if self.group_owns else USER
        return decide(subject, action, chain, lambda link: owner if link.id == owned else None).allowed


def _without(*privileges: Privilege) -> tuple[Privilege, ...]:
    return tuple(p for p in Privilege if p not in privileges)


def _denied(level: int, *privileges: Privilege) -> Rules:
    return frozenset((p, level) for p in privileges)


WORK = _without(Privilege.USE_CATALOG, Privilege.USE_SCHEMA)

WHO = (
    Situation(text="no user of the metalake, though a role allows everything", member=False, allow=ALL),
    Situation(text="no user of the metalake, but a service admin", member=False, admin=True),
    Situation(text="a user without any right"),
    Situation(text="a user and service admin", admin=True),
    Situation(text="is the target, is in it, or holds it (user, group, role)", itself=True),
    Situation(text="owns the metalake", owns=LAKE),
    Situation(text="owns the catalog", owns=MAIN),
    Situation(text="owns the outer namespace", owns=OUTER),
    Situation(text="owns the outer namespace, has USE_CATALOG", owns=OUTER, allow=USE_CATALOG),
    Situation(text="owns the inner namespace, has USE_CATALOG", owns=INNER, allow=USE_CATALOG),
    Situation(text="owns the pipeline of the run", owns=TEMPLATE),
    Situation(text="owns the target", owns=TARGET),
    Situation(text="owns the target, has USE_CATALOG", owns=TARGET, allow=USE_CATALOG),
    Situation(text="owns the target, has USE_CATALOG and USE_SCHEMA", owns=TARGET, allow=USE),
    Situation(text="is in the group that owns the metalake", owns=LAKE, group_owns=True),
    Situation(
        text="is in the group that owns the outer namespace, has USE_CATALOG",
        owns=OUTER,
        group_owns=True,
        allow=USE_CATALOG,
    ),
    Situation(
        text="is in the group that owns the target, has USE_CATALOG and USE_SCHEMA",
        owns=TARGET,
        group_owns=True,
        allow=USE,
    ),
    Situation(text="has USE_CATALOG and USE_SCHEMA on the metalake", allow=USE),
    Situation(text="has every privilege on the metalake", allow=ALL),
)

DENIED = (
    *(
        Situation(
            text=f"every privilege, USE_CATALOG denied on the {word}",
            allow=ALL,
            deny=_denied(level, Privilege.USE_CATALOG),
        )
        for word, level in (("metalake", LAKE), ("catalog", MAIN))
    ),
    *(
        Situation(
            text=f"every privilege, USE_SCHEMA denied on the {word}",
            allow=ALL,
            deny=_denied(level, Privilege.USE_SCHEMA),
        )
        for word, level in (
            ("metalake", LAKE),
            ("catalog", MAIN),
            ("outer namespace", OUTER),
            ("inner namespace", INNER),
        )
    ),
    *(
        Situation(text=f"every privilege, all but USE_* denied on the {word}", allow=ALL, deny=_denied(level, *WORK))
        for word, level in (
            ("metalake", LAKE),
            ("catalog", MAIN),
            ("outer namespace", OUTER),
            ("inner namespace", INNER),
            ("target", TARGET),
        )
    ),
    Situation(text="owns the metalake, everything denied on it", owns=LAKE, deny=_denied(LAKE, *Privilege)),
    Situation(text="owns the catalog, everything denied on it", owns=MAIN, deny=_denied(MAIN, *Privilege)),
    Situation(
        text="owns the outer namespace, everything denied on it", owns=OUTER, allow=USE, deny=_denied(OUTER, *WORK)
    ),
    Situation(
        text="owns the outer namespace, USE_CATALOG denied",
        owns=OUTER,
        allow=USE,
        deny=_denied(MAIN, Privilege.USE_CATALOG),
    ),
    Situation(
        text="owns the target, has USE_*, all else denied on it", owns=TARGET, allow=USE, deny=_denied(TARGET, *WORK)
    ),
    Situation(
        text="owns the target, USE_SCHEMA denied above",
        owns=TARGET,
        allow=USE,
        deny=_denied(OUTER, Privilege.USE_SCHEMA),
    ),
    Situation(
        text="owns the target, USE_CATALOG denied above",
        owns=TARGET,
        allow=USE,
        deny=_denied(MAIN, Privilege.USE_CATALOG),
    ),
)


def rows() -> Iterator[tuple[Action, Kind]]:
    """Return every action with every kind of object that it applies to."""
    for action in Action:
        for kind in sorted(action.kinds):
            yield action, kind


def render() -> str:
    """Render the whole matrix."""
    parts = [
        "Who may do what. Made from the policy by `python -m tests.access.matrix`; do not edit.",
        "",
        "The world: metalake > catalog > outer namespace > inner namespace > object. The target of an action on a",
        "namespace is the inner one. Users, groups, roles, tags, policies, jobs and templates lie under the metalake.",
        "",
        *_grid("1. OWNERS AND OTHERS", WHO),
        *_grid("2. DENIALS", DENIED),
        *_singles(),
    ]
    return "\n".join(parts) + "\n"


def _grid(title: str, columns: tuple[Situation, ...]) -> list[str]:
    width = max(len(_label(action, kind)) for action, kind in rows()) + 2
    lines = [title, ""]
    lines += [f"  {i:>2}  {situation.text}" for i, situation in enumerate(columns, 1)]
    lines += ["", " " * width + " ".join(f"{i:>2}" for i in range(1, len(columns) + 1))]
    for action, kind in rows():
        cells = " ".join(" +" if situation.may(action, kind) else " ." for situation in columns)
        lines.append(f"{_label(action, kind):<{width}}{cells}")
    return [*lines, ""]


def _label(action: Action, kind: Kind) -> str:
    return f"{action.word} {kind.word}"


def _singles() -> list[str]:
    lines = [
        "3. SINGLE PRIVILEGES",
        "",
        "Which privilege suffices, and on which levels: m metalake, c catalog, o outer namespace, i inner namespace,",
        "t the object itself. `alone` is without any other right, `used` with USE_CATALOG and USE_SCHEMA on the",
        "metalake; `pairs` are two privileges on the metalake, beside those, of which neither suffices.",
        "",
    ]
    for action, kind in rows():
        lines.append(_label(action, kind))
        lines += [f"    {line}" for line in _ways(action, kind)]
    return lines


def _ways(action: Action, kind: Kind) -> list[str]:
    if Situation(text="").may(action, kind):
        return ["membership is enough"]
    alone = _sufficient(action, kind, frozenset())
    lines = [f"alone: {alone}"] if alone else []
    if Situation(text="", allow=USE).may(action, kind):
        return [*lines, "used : enough without more"]
    used = _sufficient(action, kind, USE)
    pairs = ", ".join(_pairs(action, kind))
    lines += [f"used : {used}"] if used != alone else []
    lines += [f"pairs: {pairs}"] if pairs else []
    return lines or ["no privilege"]


def _sufficient(action: Action, kind: Kind, more: Rules) -> str:
    def may(privilege: Privilege, letter: str, level: int) -> bool:
        return _binds(privilege, kind, letter) and Situation(text="", allow=more | {(privilege, level)}).may(
            action, kind
        )

    def levels(privilege: Privilege) -> str:
        return "".join(letter for letter, level in LEVELS.items() if may(privilege, letter, level))

    return ", ".join(f"{p.name} {level_letters}" for p in Privilege if (level_letters := levels(p)))


def _binds(privilege: Privilege, kind: Kind, letter: str) -> bool:
    level = {"m": Kind.METALAKE, "c": Kind.CATALOG, "t": kind}.get(letter, Kind.NAMESPACE)
    return level in BINDS[privilege]


def _pairs(action: Action, kind: Kind) -> Iterator[str]:
    single = {p for p in Privilege if Situation(text="", allow=USE | {(p, LAKE)}).may(action, kind)}
    for one, two in combinations([p for p in Privilege if p not in single], 2):
        if Situation(text="", allow=USE | {(one, LAKE), (two, LAKE)}).may(action, kind):
            yield f"{one.name} + {two.name}"


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
    print(f"wrote {FILE.name}")
