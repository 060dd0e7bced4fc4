# SPDX-License-Identifier: Apache-2.0
"""Flags, values and words of other tools that stand in a wrong place here, as plain data.

Flags with another name here are in `flags`; words for commands are in `guesses`. `slips` makes the messages.
"""

from __future__ import annotations

from typing import Final

_OTHER_COMMANDS: Final = (
    ("whoami", "--groups", "groups and roles are shown with the user", "'limnos show user {0}'"),
    (
        "policy create",
        "--mask",
        "masks are of restrictions",
        "'limnos create restriction {0} PATH --mask {1}=ACTION'",
    ),
    (
        "policy create",
        "--filter",
        "filters are of restrictions",
        "'limnos create restriction {0} PATH --filter CONDITION'",
    ),
    ("console", "--no-browser", "the address is printed in any case", "'limnos console --no-open'"),
    (
        "access who|access holders",
        "--missing",
        "missing rights are those of a user",
        "'limnos access what USER {0} --missing reader'",
    ),
    ("show", "--version", "'show' has the newest version, and the versions of a model", "'limnos show {0}'"),
    (
        "set",
        "--alias|--aliases",
        "aliases of a model's versions are set by limnos.client (models.set_aliases) and Gravitino's clients",
        "'limnos show {0}' shows the versions with theirs",
    ),
    (
        "sql",
        "--catalog",
        "names in statements begin below the catalog main",
        "leave --catalog out; '--dataverse NAME' is a namespace for names without one",
    ),
    (
        "sql",
        "--lake",
        "statements read the metalake and the catalog of the server's settings",
        "leave --lake out; '--dataverse NAME' is a namespace for names without one",
    ),
    (
        "changes",
        "--since|--from|--newer-than|--last",
        "the feed has positions, and the audit has times",
        "'limnos audit --action change --since {value}'",
    ),
    (
        "audit",
        "--tail|--follow",
        "it shows the newest lines first",
        "'limnos changes --follow' follows changes as they are committed",
    ),
)
OTHER_COMMANDS: Final = {
    (command, flag): (reason, instead)
    for commands, flags, reason, instead in _OTHER_COMMANDS
    for command in commands.split("|")
    for flag in flags.split("|")
}
"""Flags of other tools for what another command does: the reason, and the command."""
PLACES: Final = {
    "audit": ("audit --who {1}", "audit --what {1}"),
    "user list": ("show user {1}",),
    "group list": ("show group {1}",),
    "role list": ("show role {1}",),
    "pipeline list": ("list runs {1}",),
    "token create": ("create token --for {1}",),
    "token list": ("list tokens --for {1}",),
    "whoami": ("whoami --as {1}",),
    "sql": ("sql -c {+}",),
    "ask": ("ask {+}",),
    "login": ("login {0}",),
    "tag create": ("set tag {0} {1}",),
    "tag delete": ("tag remove {0} {1}",),
    "role delete": ("revoke role {0} --from {1}",),
    "rename": ("rename {0} {1}",),
    "lineage up": ("lineage up {0}",),
    "changes": ("changes --catalog {1}", "changes --catalog {catalog}"),
    "access explain": ("access explain {0} {2} --for {1}",),
}
"""Where the last word belongs that a command has no place for; the second form is for a path. `{0}` is the first
argument, `{2}` the second, `{1}` the last, `{catalog}` the catalog of that one, `{+}` all of them.
"""
_SECOND_COMMANDS: Final = (
    ("user add", "--role|--roles", "grant role {value} --to {name}"),
    ("user add", "--password|-p", "set password {name}"),
    ("user add", "--group|--groups", "group add {value} {name}"),
    ("group create", "--user|--member|--members", "group add {name} {value}"),
    ("role create", "--privilege|--privileges|--grant", "grant {value} --on PATH --to {name}"),
)
SECOND_COMMANDS: Final = {
    (command, flag): second for command, flags, second in _SECOND_COMMANDS for flag in flags.split("|")
}
"""Flags of other tools' `create`, and the second command that does it here."""
_LIST_FILTERS: Final = """
    --where --filter --sort --sort-by --order --order-by --limit --max-items --page-size --query
    --selector --since --until --last -n
"""
LIST_FILTERS: Final = frozenset(_LIST_FILTERS.split())
"""Flags of other tools that filter, sort or cut lists."""
LISTED_TABLES: Final = {
    "list": "nodes",
    "user list": "principals",
    "group list": "principals",
    "role list": "principals",
    "tag list": "tags",
    "policy list": "policies",
    "pipeline runs": "runs",
}
"""The system table that has what a command lists."""
CHOICES: Final = {
    word: choice
    for choice, words in {
        "refused": "denied deny forbidden rejected unauthorized",
        "failed": "error errors failure fail failing",
        "done": "success succeeded ok allowed completed",
    }.items()
    for word in words.split()
}
"""Others' words for the choices of a flag."""
FIND_FILTERS: Final = {"--owner": "owner", "--owned-by": "owner", "--tag": "tag"}
"""Filters of `find`, by flags that are typed for `list`."""
TIME_UNITS: Final = frozenset({"day", "hour", "hr", "minute", "min", "second", "sec", "week"})
SHORT_KINDS: Final = {"ns": "namespace", "db": "namespace", "cat": "catalog", "tbl": "table", "t": "table"}
"""Short kinds of other tools, which a catalog may be called too."""
