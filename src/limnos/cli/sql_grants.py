# SPDX-License-Identifier: Apache-2.0
"""`GRANT` and `REVOKE` as SQL has them, and the command to type instead.

A privilege is given to a role here. A preset is given to a user, a group or a role, so that it is proposed where SQL
gives a right to a name; the server knows which of them the name is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from limnos.cli.sentences import Proposal, quote_command

_KINDS: Final = frozenset(
    {"table", "view", "schema", "namespace", "database", "catalog", "fileset", "model", "topic", "metalake"}
)
_HOLDERS: Final = ("user", "group", "role")
SQL_PRIVILEGES: Final = {
    "select": "select_table",
    "read": "select_table",
    "insert": "modify_table",
    "update": "modify_table",
    "delete": "modify_table",
    "modify": "modify_table",
    "write": "modify_table",
    "create": "create_table",
    "usage": "use_schema",
}
"""The privileges that words of SQL mean; USAGE of a catalog is USE_CATALOG."""
_LINE: Final = re.compile(
    r"(?P<what>.+?) on (?P<place>\S+(?: \S+)?) (?P<way>to|from) (?P<who>\S+(?: \S+)?)", re.IGNORECASE
)
_ALL_OF: Final = re.compile(
    r"\bon (?:all|any|future) \w+ (?:in|of) (?=(?:schema|namespace|database|catalog|metalake) \S|\S+ (?:to|from) )",
    re.IGNORECASE,
)
"""`on all tables in schema main.hr`: privileges on a namespace count for all objects below it."""
_NOTE: Final = "'{}' takes options where SQL has words, and privileges are held by roles"


def grant_for(words: Sequence[str]) -> Proposal | None:
    """Return the command for `grant PRIVILEGE on [KIND] PATH to [user|group|role] NAME`, or `revoke … from`; None for
    other words.
    """
    verb = words[0].lower() if words else ""
    if verb in {"deny", "forbid", "block"}:
        return _denial(words)
    if verb not in {"grant", "revoke"}:
        return None
    match = _LINE.fullmatch(_ALL_OF.sub("on ", " ".join(words[1:])))
    if match is None or (match["way"].lower() == "to") != (verb == "grant"):
        return None
    *kinds, path = match["place"].split()
    *holders, name = match["who"].split()
    privileges = [
        each for each in re.split(r"[\s,]+", match["what"].lower()) if each not in {"privilege", "privileges"}
    ]
    if not (set(map(str.lower, kinds)) <= _KINDS and set(map(str.lower, holders)) <= set(_HOLDERS)):
        return None
    return _command(verb, privileges, path=path, holder=(holders[0].lower() if holders else "", name))


def _command(verb: str, privileges: Sequence[str], *, path: str, holder: tuple[str, str]) -> Proposal | None:
    kind, name = holder
    word, _, rest = name.partition(":")
    if not kind and word in _HOLDERS and rest:
        kind, name = word, rest
    option = "--to" if verb == "grant" else "--from"
    target_text = f"{kind}:{name}" if kind else name
    note = _NOTE.format(verb)
    if list(privileges) == ["ownership"]:
        return Proposal(("set", "owner", path, f"group:{name}" if kind == "group" else name), "an object has one owner")
    preset = {"all": "admin", "select": "reader", "read": "reader", "reader": "reader", "writer": "writer"}
    preset |= {"admin": "admin"}
    usages = [_privilege(each, path) for each in privileges]
    exact = (verb, *usages, "--on", path, option)
    if len(privileges) == 1 and privileges[0] in preset and kind != "role":
        command = (verb, "--preset", preset[privileges[0]], path, option, target_text)
        role_hint = "" if privileges[0] not in SQL_PRIVILEGES else f"; to a role alone: {quote_command((*exact, name))}"
        if verb == "revoke":
            role_hint = role_hint.replace("to a role alone", "from a role alone")
        more = role_hint if kind else f"; several may have this name: user:{name}, group:{name}, role:{name}{role_hint}"
        return Proposal(command, f"{note}; a preset is for users, groups and roles", more)
    if list(privileges) == ["all"]:
        return Proposal((verb, "--preset", "admin", path, option, target_text), f"{note}; all of them are a preset")
    if kind == "role":
        return Proposal((*exact, name), note)
    role = quote_command((verb, "role", "ROLE", option, target_text))
    then = f", then {role}" if verb == "grant" else f"; {role} takes a whole role away"
    return Proposal((*exact, "ROLE"), note, f"{then}; if {name} is a role: {quote_command((*exact, name))}")


def _denial(words: Sequence[str]) -> Proposal | None:
    """Return the command for `deny PRIVILEGE on PATH to NAME`; None for other words."""
    match = _LINE.fullmatch(_ALL_OF.sub("on ", " ".join(words[1:])))
    if match is None or match["way"].lower() != "to":
        return None
    path = match["place"].split()[-1]
    kind, name = _holder(match["who"])
    usages = [_privilege(each, path) for each in re.split(r"[\s,]+", match["what"].lower())]
    note = "a denial is held by a role, which users and groups are given by 'limnos grant role ROLE --to NAME'"
    denies = ("grant", *usages, "--on", path, "--to")
    if kind == "role":
        return Proposal((*denies, name, "--deny"), note)
    gives = quote_command(("grant", "role", "ROLE", "--to", f"{kind}:{name}" if kind else name))
    more = "" if kind else f"; if {name} is a role: {quote_command((*denies, name, '--deny'))}"
    return Proposal((*denies, "ROLE", "--deny"), note, f", then {gives}{more}")


def _holder(text: str) -> tuple[str, str]:
    """Return the kind and the name of `ana`, `user ana` or `user:ana`; an empty kind if there is none."""
    *kinds, name = text.split()
    word, colon, rest = name.partition(":")
    if not kinds and word in _HOLDERS and colon and rest:
        return word, rest
    return (kinds[0].lower() if kinds else "", name)


def _privilege(word: str, path: str) -> str:
    if word in {"usage", "use"}:
        return "use_schema" if "." in path else "use_catalog"
    return SQL_PRIVILEGES.get(word, word)
