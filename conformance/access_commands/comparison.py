# SPDX-License-Identifier: Apache-2.0
"""Compares what the commands about access say with the server's decisions."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.access_commands.decisions import PROBES, Table, levels_by_user
from conformance.access_commands.lakes import LakeObject
from limnos.access.actions import Action
from limnos.access.levels import LEVELS, actions_on, levels_in, levels_of
from limnos.access.restrictions import RESTRICTED_ACTIONS
from limnos.model.kinds import CONTAINERS, NAMESPACE_OBJECTS, Kind
from limnos.model.presets import PRESETS
from limnos.names import display

if TYPE_CHECKING:
    from conformance.access_commands.commands import Commands
    from conformance.access_commands.decisions import Decisions
    from conformance.access_commands.lakes import RandomLake

ADMIN: Final = "admin"
METALAKE: Final = "lake"
"""The metalake, which the commands name by its own name: it has no path."""
Rights = frozenset[tuple[Action, LakeObject]]
LEVEL_ACTIONS: Final = {
    kind: tuple(dict.fromkeys(action for some in levels_of(kind).values() for action in some)) for kind in Kind
}

_OF_OTHER_KINDS: Final = frozenset({"table_may_probe", "view_may_probe"})
"""Actions that only choose the status of a refusal for a name of another kind: a denial there counts for nothing."""


class Comparison:
    """Compares one lake. `wrong` has a line for each disagreement."""

    def __init__(self, lake: RandomLake, decisions: Decisions, commands: Commands) -> None:
        self.lake, self.decisions, self.commands = lake, decisions, commands
        self.users = [ADMIN, *lake.users]
        self.wrong: list[str] = []
        self.checks: Counter[str] = Counter()

    def expect(self, what: str, printed: object, decided: object) -> None:
        """Record a disagreement of what a command says with what the server decides."""
        self.checks[what.split(" ", 1)[0]] += 1
        if printed == decided:
            return
        if isinstance(printed, set | frozenset) and isinstance(decided, set | frozenset):
            printed, decided = sorted(map(str, printed - decided)), sorted(map(str, decided - printed))
        self.wrong.append(f"{what}: only the command says {printed}, only the server decides {decided}")

    def table(self) -> Table:
        """Return the actions of every user on every object."""
        with self.decisions.all_enabled():
            return {
                (user, each): self.decisions.actions(user, each) for user in self.users for each in self.lake.objects
            }

    def compare_probes(self, table: Table) -> None:
        """Compare decisions with the answers to the requests themselves, and those on disabled users with refusals."""
        for user in sorted(self.lake.disabled):
            for each in self.lake.objects[:4]:
                self.expect(f"disabled {user} {each}", self.decisions.refused(user, each), True)
        for (user, each), actions in table.items():
            is_answered = self.decisions.probe(user, each)
            if is_answered is not None:
                is_allowed = any(Action(probe) in actions for probe in PROBES[each.kind])
                self.expect(f"request {user} {each}", is_answered, is_allowed)

    def compare_who(self, table: Table) -> None:
        """`access who`: the users of each level, and of each action, are those whom the server allows it."""
        for each in self.lake.objects:
            where = (*self._path(each), "--kind", each.kind.word)
            if each.kind not in Action.EXPLAIN_OTHERS.kinds:
                continue
            printed = {row["user"]: set(row["may"].split(", ")) for row in self.commands.run("access", "who", *where)}
            decided = {user: set(levels_in(table[user, each], each.kind)) for user in self.users}
            self.expect(f"who {each}", self._enabled(printed), {user: may for user, may in decided.items() if may})
            for action in actions_on(each.kind):
                users = {user for user in self.users if action in table[user, each]}
                page = self.commands.client.access.holders(each.path, kind=each.kind.word, action=action, limit=1_000)
                self.expect(f"who {each} {action.word}", {holder.user for holder in page.holders}, users)
            rows = self.commands.run("access", "who", *where, "--action", action.word)
            self.expect(f"who {each} {action.word}", set(self._enabled({row["user"]: 1 for row in rows})), users)

    def _enabled(self, printed: dict[str, object]) -> dict[str, object]:
        """Return rows by the names of users. Disabled users are marked, and are in the list with what they would do."""
        marks = {f"{user} (disabled)": user for user in self.lake.disabled}
        return {marks.get(user, user): row for user, row in printed.items()}

    def compare_what(self, table: Table) -> None:
        """`access what`: a user has exactly the levels on exactly the objects that the server allows."""
        for user in self.users:
            rows = self.commands.run("access", "what", user)
            printed = {(row["kind"], row["path"], row["may"]) for row in rows if row["kind"] in KNOWN}
            decided = set()
            for each in self.lake.objects:
                levels = [level for level in LEVELS if level in levels_in(table[user, each], each.kind)]
                if levels:
                    decided.add((each.kind.word, display.render(each.path) or METALAKE, ", ".join(levels)))
            self.expect(f"what {user}", printed, decided)

    def compare_diff(self, table: Table) -> None:
        """`access diff`: the actions that one user may take and another may not, without those of other kinds."""
        for user, other in zip(self.users, [*self.users[1:], self.users[0]], strict=True):
            rows = self.commands.run("access", "diff", user, other)
            printed = {
                (row["kind"], tuple(row["path"]), side, action)
                for row in rows
                for side in ("user", "other")
                for action in row[side]["actions"]
                if row["kind"] in KNOWN
            }
            decided = {
                (each.kind.word, each.path, side, action.word)
                for each in self.lake.objects
                for side, first, second in (("user", user, other), ("other", other, user))
                for action in table[first, each] - table[second, each]
                if action.word not in _OF_OTHER_KINDS
            }
            self.expect(f"diff {user} {other}", printed, decided)

    def _level_table(self) -> Table:
        with self.decisions.all_enabled():
            return {
                (user, each): self.decisions.actions(user, each, LEVEL_ACTIONS[each.kind])
                for user in self.users
                for each in self.lake.objects
            }

    def compare_simulate(self, changes: int) -> None:
        """`access simulate`: the users and objects that gain or lose a level are those of the change itself."""
        before = levels_by_user(self._level_table())
        for _ in range(changes):
            words = self._draw_change()
            if words[0] == "revoke":  # what is revoked may have been granted just now
                before = levels_by_user(self._level_table())
            consequence = self.commands.run("access", "simulate", *words)
            self.commands.run(*words)
            after = levels_by_user(self._level_table())
            printed = {
                (line["level"], line["kind"], line["gains"], line["users"], line["objects"])
                for line in consequence["lines"]
                if line["kind"] in KNOWN
            }
            decided = set()
            for gains, part in ((True, after - before), (False, before - after)):
                for level, kind in {(level, on.kind) for _, level, on in part}:
                    met = [each for each in part if (each[1], each[2].kind) == (level, kind)]
                    users, objects = len({each[0] for each in met}), len({each[2] for each in met})
                    decided.add((level, kind.word, gains, users, objects))
            self.expect(f"simulate {' '.join(words)}", printed, decided)
            before = after

    def _draw_change(self) -> tuple[str, ...]:
        drawn = self.lake.drawn
        verb = drawn.choice(("grant", "grant", "revoke"))
        end = "--to" if verb == "grant" else "--from"
        form = drawn.randrange(3)
        on = drawn.choice([each for each in self.lake.objects if each.path])
        if form == 0:
            holder = drawn.choice([f"user:{drawn.choice(self.lake.users)}", "group:north", f"role:{self._role()}"])
            if verb == "revoke":
                holder = f"role:{self._role()}"
            return (verb, "--preset", drawn.choice(tuple(PRESETS)), *self._on(on), end, holder)
        if form == 1:
            return (
                verb,
                "role",
                self._role(),
                end,
                drawn.choice([f"user:{drawn.choice(self.lake.users)}", "group:south"]),
            )
        privileges = [each["name"].lower() for each in self.lake.draw_privileges(on)]
        denies = ("--deny",) if drawn.random() < 0.2 else ()
        where = ("--on", display.render(on.path), "--kind", on.kind.word)
        # Granting what the role denies on the same object is refused: a role of its own has neither.
        role = f"s{len(self.lake.roles)}"
        self.lake.roles.append(role)
        self.commands.run("create", "role", role)
        self.commands.run("grant", "role", role, "--to", f"user:{drawn.choice(self.lake.users)}")
        if verb == "revoke":
            self.commands.run("grant", *privileges, *denies, *where, "--to", f"role:{role}")
        return (verb, *privileges, *denies, *where, end, f"role:{role}")

    def _role(self) -> str:
        return self.lake.drawn.choice(self.lake.roles)

    def _on(self, on: LakeObject) -> tuple[str, ...]:
        return (*self._path(on), "--kind", on.kind.word) if on.path else ("--on-metalake",)

    def _path(self, on: LakeObject) -> tuple[str, ...]:
        return (display.render(on.path),) if on.path else ()

    def compare_missing(self, cases: int) -> None:
        """`access what --missing`: the missing privileges, granted, allow what the preset gives, and fewer do not."""
        for number in range(cases):
            drawn = self.lake.drawn
            preset = drawn.choice(tuple(PRESETS))
            on = drawn.choice([each for each in self.lake.objects if each.path and each.kind is not Kind.METALAKE])
            user = drawn.choice([each for each in self.lake.users if each not in self.lake.disabled])
            self._compare_one_missing(f"m{number}", user, preset, on)

    def _given(self, name: str, preset: str, on: LakeObject) -> Rights:
        """Return the rights of a new user who has the preset and nothing else."""
        self.commands.run("create", "user", name)
        nothing = self._rights(name, on)
        self.commands.run("grant", "--preset", preset, *self._on(on), "--to", f"user:{name}")
        preset_rights = self._rights(name, on) - nothing
        self.expect(f"preset {preset} {on} gives rights", bool(preset_rights), True)
        self.commands.run("revoke", "--preset", preset, *self._on(on), "--from", f"user:{name}")
        self.expect(f"preset {preset} {on} revoked", self._rights(name, on), nothing)
        return preset_rights

    def _rights(self, user: str, on: LakeObject, among: Rights | None = None) -> Rights:
        """Return the rights of a user on an object, and on objects of each kind that would be made in it."""
        rights = set()
        for each in (on, *_inside(on)):
            chosen = None if among is None else [action for action, at in among if at == each]
            rights |= {(action, each) for action in self.decisions.actions(user, each, chosen)}
        return frozenset(rights)

    def _compare_one_missing(self, name: str, user: str, preset: str, on: LakeObject) -> None:
        case = f"missing {preset} of {user} on {on.kind.word} {display.render(on.path)}"
        rights_of_preset = self._given(f"probe {name}", preset, on)
        preset_rights = frozenset([each for each in rights_of_preset if each[0].word not in _OF_OTHER_KINDS])
        words = ("access", "what", user, *self._path(on), "--missing", preset, "--kind", on.kind.word)
        answer = self.commands.run(*words)
        case += f" ({len(answer['missing'])} privileges, restricted by {answer['restrictions']})"
        if answer["restrictions"]:
            preset_rights = frozenset([each for each in preset_rights if each[0] not in RESTRICTED_ACTIONS])
        refused = preset_rights - self._rights(user, on, preset_rights)
        self.expect(f"{case} is empty", not answer["missing"], not refused)
        role = f"exact {name}"
        self.commands.run("create", "role", role)
        self.commands.run("grant", "role", role, "--to", f"user:{user}")
        for each in answer["missing"]:
            self.commands.run("grant", each["privilege"].lower(), *self._where(each["object"]), "--to", f"role:{role}")
        revocations = answer["commands"][:-1]
        if revocations and refused:
            left = preset_rights - self._rights(user, on, preset_rights)
            self.expect(f"{case} with its denials is refused", bool(left), True)
        for command in revocations:
            self.commands.run(*shlex.split(command)[1:])
        self.expect(f"{case} granted exactly", preset_rights - self._rights(user, on, preset_rights), frozenset())
        self.expect(f"{case} again", self.commands.run(*words)["missing"], [])
        # Where a denial was in the way, a grant from before may have effect again.
        missing = [each for each in answer["missing"] if not each["denials"]]
        for privilege, where in [(each["privilege"].lower(), self._where(each["object"])) for each in missing]:
            self.commands.run("revoke", privilege, *where, "--from", f"role:{role}")
            refused = preset_rights - self._rights(user, on, preset_rights)
            if refused or not self._is_redundant(
                f"probe {name}", preset, on, less=(privilege, *where), preset_rights=preset_rights
            ):
                self.expect(f"{case} without {privilege} is refused", bool(refused), True)
            self.commands.run("grant", privilege, *where, "--to", f"role:{role}")

    def _is_redundant(
        self, probe: str, preset: str, on: LakeObject, *, less: tuple[str, ...], preset_rights: Rights
    ) -> bool:
        """Return whether another privilege of a preset gives what a privilege gives, as MODIFY_FUNCTION gives what
        EXECUTE_FUNCTION does.
        """
        self.commands.run("grant", "--preset", preset, *self._on(on), "--to", f"user:{probe}")
        self.commands.run("revoke", *less, "--from", f"role:user:{probe}")
        self.checks["redundant"] += 1
        return preset_rights <= self._rights(probe, on, preset_rights)

    def _where(self, on: dict[str, str]) -> tuple[str, ...]:
        return ("--on-metalake",) if on["kind"] == "metalake" else ("--on", on["name"], "--kind", on["kind"])


def _inside(on: LakeObject) -> list[LakeObject]:
    """Return missing objects of each kind that a container may contain; explanations take them as new ones."""
    if on.kind not in CONTAINERS:
        return []
    space = LakeObject(Kind.NAMESPACE, (*on.path, "new"))
    leaves = [LakeObject(kind, (*space.path, "new")) for kind in NAMESPACE_OBJECTS if kind in INSIDE]
    return [space, *leaves]


KNOWN: Final = {kind.word for kind in (*CONTAINERS, Kind.TABLE, Kind.VIEW, Kind.FILESET, Kind.MODEL)}
"""The kinds of objects that random lakes have."""
INSIDE: Final = (Kind.TABLE, Kind.VIEW, Kind.FILESET, Kind.TOPIC, Kind.MODEL, Kind.FUNCTION)
