# SPDX-License-Identifier: Apache-2.0
"""Answers to words that are no command: what is wrong, and the command to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Final

from limnos.cli.errors import UsageError
from limnos.cli.grammar.spelling import aliases_of, nearest, typed_as
from limnos.cli.guesses import PROGRAMS, command_for, guessed_words, own_words
from limnos.cli.operations import COMMANDS, GROUPS, KIND_WORDS, OPERATIONS, VERB_ALIASES, plural
from limnos.cli.proposals import correct_command
from limnos.cli.signatures import is_installed
from limnos.cli.sql_grants import SQL_PRIVILEGES
from limnos.model.declared_kinds import DECLARED_WORDS
from limnos.model.privileges import Privilege

SQL_WORDS: Final = ("on", "to", "from")
_PRIVILEGE_WORDS: Final = frozenset(each.word for each in Privilege)
_SAME_COMMANDS: Final = (
    {"create", "add", "new", "make", "register", "set"},
    {"delete", "remove", "rm", "drop", "del", "revoke", "end", "destroy"},
    {"list", "ls", "all", "runs"},
    {"show", "describe", "get", "info", "view", "desc", "explain", "status"},
    {"run", "start", "exec", "execute", "now"},
    {"cancel", "stop", "kill", "abort"},
    {"grant", "approve", "accept", "confirm"},
    {"decline", "reject", "refuse"},
    {"check", "test", "verify", "validate"},
)
"""Words for the same command in different groups."""
_FIRST_COMMANDS: Final = {
    "lineage": "up",
    "maintenance": "explain",
    "owner": "show",
    "request": "access",
    "table": "check",
    "restriction": "show",
    "lance": "list",
    "user": "describe",
    "role": "describe",
    "group": "describe",
    "tag": "describe",
    "policy": "describe",
    "pipeline": "check",
    "storage": "check",
    "trash": "list",
    "job": "show",
    "task": "show",
    "access": "holders",
    "profile": "use",
    "names": "check",
}
"""The command of a group that is meant when its name is followed by an argument."""
_ELSEWHERE: Final = {
    "trash restore": "undrop",
    "trash undrop": "undrop",
    "trash undelete": "undrop",
    "pipeline logs": "show run",
    "pipeline log": "show run",
    "pipeline history": "list runs",
    "table repair": "table mend",
    "table fix": "table mend",
    "table details": "show table",
    "owner change": "set owner",
    "profile add": "login",
    "profile create": "login",
    "role members": "show role",
    "role assignment": "grant role",
}
"""Commands that users look for in a group, and where they are."""


def _same_command(word: str, commands: Sequence[str]) -> str | None:
    """Return the command of a group that means the same as a word."""
    for same in _SAME_COMMANDS:
        if word in same:
            return next((command for command in commands if command in same), None)
    return None


_PLAIN_ANSWER: Final = re.compile(
    r"there is no|the command is missing|'limnos [^']*' (?:has no|knows no|does not take|needs|is typed)"
)
"""The beginnings of answers that only say that words are no command."""
_NEAR_VERBS: Final = {"list": ("show",), "show": ("list",), "create": ("set",), "set": ("create",), "delete": ("set",)}
_SAID_OTHERWISE: Final = {
    "list maintenance": "list operations",
    "list lineage": "show lineage",
    "set run": "pipeline resume",
}
"""For a verb with a kind that it does not take, the command that does what is meant."""


def _places(words: Sequence[str]) -> dict[str, str]:
    """Return the word after `on`, `to` and `from`, past a word for its kind; a group has its kind before the name."""
    result: dict[str, str] = {}
    place = kind = ""
    for word in words:
        if word.lower() in SQL_WORDS:
            place, kind = word.lower(), ""
        elif place and (place not in result or result[place].lower() in KIND_WORDS):
            result[place] = f"group:{word}" if kind == "group" and place != "on" else word
            kind = word.lower()
    return result


class WrongWords:
    """The answers to words that are no command. `resolve` reads a command line, as the grammar does: by it each
    proposal is checked before it is printed.
    """

    def __init__(self, resolve: Callable[[Sequence[str]], list[str]]) -> None:
        self._resolve = resolve

    def propose(self, tokens: Sequence[str]) -> str:
        """Return a command line as an answer proposes it, in quotes and corrected (see `proposals`)."""
        return correct_command(tokens, resolve=self._resolve)

    def guess_error(self, typed: str, guess: tuple[list[str], str], *, flags: Sequence[str]) -> UsageError:
        """Return the error for words that the table of guesses has; `guess` is what `command_for` returned."""
        command, note = guess
        if command[:1] == ["set"] and len(command) == 2 and not flags:
            command = [*command, "--comment", "TEXT"]
        message = note or f"there is no command '{typed}'"
        return UsageError(
            message,
            hint=self.propose([*command, *flags]) if command else "'limnos --help' lists all commands",
        )

    def unknown_command(self, words: Sequence[str], flags: Sequence[str] = ()) -> UsageError:
        """Return the error for words that are no command, with the command to type."""
        if [each.lower() for each in (words[0], *words[2:3])] == ["add", "to"] and len(words) > 3:
            proposal = self.propose(["group", "add", words[3], words[1], *flags])
            return UsageError(f"'add {words[1]} to' does not say to what", hint=f"{proposal}, if {words[3]} is a group")
        if (meant := own_words([*words, *flags])) is not None:
            return UsageError(f"there is no command '{words[0]}'{self._note_on(meant)}", hint=self.propose(meant))
        guess = command_for(words)
        if guess is not None:
            return self.guess_error(words[0], guess, flags=flags)
        near = nearest(words[0].lower(), [*COMMANDS, *VERB_ALIASES, "help"])
        if near is not None:
            return UsageError(f"there is no command '{words[0]}'", hint=self.propose([near, *words[1:], *flags]))
        near = nearest(words[0].lower(), guessed_words(), cutoff=0.86)
        if near is not None and (guess := command_for([near, *words[1:]])) is not None:
            return self.guess_error(words[0], guess, flags=flags)
        if "." in words[0] or "`" in words[0]:
            hint = f"{self.propose(['show', *words, *flags])} shows it"
            return UsageError(f"the verb is missing before '{words[0]}'", hint=hint)
        if words[0].lower() in PROGRAMS and len(words) > 1:
            text = f"there is no command '{words[0]}', and none for '{' '.join(words[1:3])}'"
            return UsageError(text, hint="'limnos --help' lists all commands")
        hint = "'limnos --help' lists all commands"
        if is_installed(("find",)):
            search = shlex.join(["limnos", "find", *words])
            hint = f"'limnos --help' lists all; '{search}' searches the objects of the lake"
        return UsageError(f"there is no command '{words[0]}'", hint=hint)

    def _note_on(self, tokens: Sequence[str]) -> str:
        """Return what an answer to these words would say, after a semicolon; empty if they are a command, or if it
        would only say that they are none.
        """
        try:
            self._resolve(tokens)
        except UsageError as error:
            is_plain = _PLAIN_ANSWER.match(error.message) is not None
            return "" if is_plain or " missing after " in error.message else f": {error.message}"
        return ""

    def unknown_in_group(self, lowered: Sequence[str], words: Sequence[str], *, flags: Sequence[str]) -> UsageError:
        """Return the error for a group without a command, or with a word that is none of its commands."""
        group, commands = lowered[0], GROUPS[lowered[0]]
        command_list = ", ".join(commands)
        if len(lowered) == 1:
            proposal = self.propose([*group.split(), commands[0], *flags])
            return UsageError(f"options come after a command of 'limnos {group}': {command_list}", hint=proposal)
        if (guess := command_for([*group.split(), *words[1:]], least=2)) is not None:
            return self.guess_error(f"{group} {words[1]}", guess, flags=flags)
        near = _same_command(lowered[1], commands) or nearest(lowered[1], [*commands, *aliases_of(group)])
        if near is None and group in ("tag", "policy") and "." in words[1] and len(words) > 2:
            proposal = self.propose(["set", group, words[2], words[1], *flags])
            return UsageError(f"the command is missing between '{group}' and '{words[1]}'", hint=proposal)
        if near is None and group in ("tag", "policy") and len(words) == 3 and "." in words[2]:
            proposal = self.propose(["set", group, words[1], words[2], *flags])
            return UsageError(f"the command is missing between '{group}' and '{words[1]}'", hint=proposal)
        if near is None and (verb := _ELSEWHERE.get(f"{group} {lowered[1]}")) is not None:
            return UsageError(
                f"'limnos {group}' has no command '{words[1]}'", hint=self.propose([*verb.split(), *words[2:], *flags])
            )
        is_name = len(words) == 2 or "." in words[1] or "`" in words[1]
        if near is None and group in _FIRST_COMMANDS and is_name:
            first = _FIRST_COMMANDS[group]
            if group == "access":
                first = "who" if "." in words[1] or "`" in words[1] else "what"
            proposal = self.propose([*typed_as(f"{group} {first}").split(), words[1], *flags])
            if group == "access" and first == "what":
                proposal += f" of a user, {self.propose(['access', 'who', words[1], *flags])} of a catalog"
            return UsageError(
                f"the command is missing between '{group}' and '{words[1]}'",
                hint=f"{proposal}, or another command: {command_list}",
            )
        if near is None:
            hint = f"'limnos {group} --help' explains them"
            return UsageError(f"'limnos {group}' has no command '{words[1]}'; it has {command_list}", hint=hint)
        proposal = self.propose([*typed_as(f"{group} {near}").split(), *words[2:], *flags])
        return UsageError(f"'limnos {group}' has no command '{words[1]}'", hint=proposal)

    def unknown_kind(
        self, verb: str, lowered: Sequence[str], *, words: Sequence[str], flags: Sequence[str]
    ) -> UsageError:
        """Return the error for a verb with a kind that it does not take, or with none."""
        kinds = [each.kind for each in OPERATIONS if each.verb == verb]
        if len(lowered) < 2:
            return UsageError(
                f"'limnos {verb}' needs a kind: {', '.join(kinds)}", hint=f"'limnos {verb} --help' explains them"
            )
        guess = command_for([verb, *words[1:]]) or command_for([verb, words[1].removesuffix("s"), *words[2:]])
        if guess is not None:
            return self.guess_error(f"{verb} {words[1]}", guess, flags=flags)
        if (error := self._of_another_verb(verb, lowered, words=words, flags=flags)) is not None:
            return error
        near = nearest(lowered[1], kinds)
        if near is not None and near != lowered[1]:
            proposal = self.propose([verb, near, *words[2:], *flags])
            return UsageError(f"'limnos {verb}' knows no '{words[1]}'", hint=proposal)
        if verb == "create" and "." in words[1]:
            proposal = self.propose(["create", "namespace", *words[1:], *flags])
            return UsageError(
                "the kind is missing: engines create tables, 'limnos create' the rest",
                hint=f"{proposal}, or another kind: {', '.join(kinds)}",
            )
        return UsageError(
            f"'limnos {verb}' does not take '{words[1]}'; it takes {', '.join(kinds)}",
            hint=f"'limnos {verb} --help' explains them",
        )

    def _of_another_verb(
        self, verb: str, lowered: Sequence[str], *, words: Sequence[str], flags: Sequence[str]
    ) -> UsageError | None:
        """Return the error for a kind that other verbs take, with the command to type and how an object of this name is
        typed; None for other words.
        """
        kind = KIND_WORDS.get(lowered[1])
        others = [each for each in OPERATIONS if each.kind == kind and each.verb != verb]
        if kind is None or not others:
            return None
        if verb in {"list", "set"} and any("." in word for word in words[2:]) and kind in DECLARED_WORDS:
            hint = self.propose([verb, *words[2:], *flags])
            return UsageError(f"'limnos {verb}' takes the path of a {kind} alone", hint=hint)
        best = next((each for each in others if each.verb in _NEAR_VERBS.get(verb, ())), others[0])
        typed = words[1] if KIND_WORDS.get(words[1].lower()) == kind else words[0]
        usual = plural(kind) if best.verb == "list" else kind
        hint = self.propose(
            [*_SAID_OTHERWISE.get(f"{verb} {kind}", f"{best.verb} {usual}").split(), *words[2:], *flags]
        )
        if verb in {"list", "show", "set", "rename", "delete"}:
            hint += f"; a catalog of this name: {self.propose([verb, '--kind', 'catalog', typed])}"
        return UsageError(f"'limnos {verb}' does not take '{typed}'", hint=hint)

    def sql_grant(self, verb: str, words: Sequence[str], *, flags: Sequence[str]) -> UsageError:
        """Return the error for words of SQL that `grant_for` does not know as a whole grant, with the options that the
        command has instead.
        """
        spoken = [word.rstrip(",") for word in words if word.lower() not in {"privileges", "privilege"}]
        at = next((at for at, word in enumerate(spoken) if word.lower() in SQL_WORDS), len(spoken))
        granted_words, target_words = [word.lower() for word in spoken[:at]], _places(spoken[at:])
        holder = next((f"--{word} {target_words[word]}" for word in ("to", "from") if word in target_words), "")
        after = [word.lower() for word in spoken[at + 1 : at + 2]]
        if granted_words[:1] == ["role"] and after == ["role"] and len(granted_words) > 1:
            shows = self.propose(["show", "role", granted_words[1]])
            return UsageError("a role is granted to users and groups, not to a role", hint=f"{shows} has its rights")
        path = target_words.get("on", "PATH")
        privileges = [SQL_PRIVILEGES.get(word, word) for word in granted_words]
        note = f"'{verb}' takes options where SQL has words: --on, --to, --from"
        name = target_words.get("to", target_words.get("from", "NAME"))
        if granted_words == ["all"]:
            preset = ["--preset", "admin", path, f"--{'from' if verb == 'revoke' else 'to'}", f"user:{name}"]
            return UsageError(
                "all that an administrator of an object needs is a preset", hint=self.propose([verb, *preset, *flags])
            )
        if "on" not in target_words and "--on" not in flags and granted_words[:1] != ["role"]:
            is_known = all(word in _PRIVILEGE_WORDS or word in SQL_PRIVILEGES for word in granted_words)
            turned = [*privileges, "--on", "PATH"] if is_known else ["role", *spoken[:at]]
            return UsageError(note, hint=self.propose([verb, *turned, *holder.split(), *flags]))
        turned = [
            *(spoken[:at] if granted_words[:1] == ["role"] else privileges),
            *(["--on", path] if "on" in target_words else []),
        ]
        return UsageError(note, hint=self.propose([verb, *turned, *holder.split(), *flags]))
