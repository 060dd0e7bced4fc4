# SPDX-License-Identifier: Apache-2.0
"""The commands and the operations of the command line, as plain data.

An operation is what a user types, `limnos VERB KIND …`; it names the command that performs it. `grammar` reads an
operation, `help_page` prints them, `completion` offers them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, cast

from limnos.manifests.manifest import load
from limnos.manifests.switches import VARIABLE, room_set
from limnos.model.kinds import Kind

DECLARED: Final = tuple(kind.word for kind in Kind if kind.is_declared)
"""The words of declared kinds."""
VERBS: Final = ("create", "list", "show", "set", "rename", "delete")
"""The verbs that take a kind; `grant` and `revoke` take a privilege or a role instead."""

VERB_ALIASES: Final = {"ls": "list", "describe": "show", "mv": "rename", "drop": "delete", "search": "find"}
"""Other spellings of verbs and of `find`, which stay valid."""


class CommandEntry(NamedTuple):
    """A command: the topic under which the help page has it, its line of help, and where its code is."""

    topic: str
    summary: str
    module: str


TOPICS: Final = ("Objects", "Users and access", "Work", "Server")
OBJECTS, ACCESS, WORK, SERVER = TOPICS

_KERNEL_COMMANDS: Final[dict[str, CommandEntry]] = {
    "list": CommandEntry(
        OBJECTS, "List catalogs, what is in one, or users, roles, runs and more.", "limnos.cli.catalog.tree:ls"
    ),
    "tree": CommandEntry(
        OBJECTS, "Show what is below a catalog or namespace, as a tree.", "limnos.cli.catalog.tree:tree"
    ),
    "show": CommandEntry(OBJECTS, "Show everything about one object.", "limnos.cli.catalog.tree:describe"),
    "create": CommandEntry(
        OBJECTS, "Create a catalog, namespace, user, role and more.", "limnos.cli.catalog.create:app"
    ),
    "set": CommandEntry(
        OBJECTS, "Change comment, properties, owner, tags of an object.", "limnos.cli.governance.alter:set_"
    ),
    "rename": CommandEntry(OBJECTS, "Rename or move a namespace, table, view and more.", "limnos.cli.catalog.tree:mv"),
    "delete": CommandEntry(OBJECTS, "Delete an object; most can be restored.", "limnos.cli.catalog.removal:drop"),
    "catalog": CommandEntry(OBJECTS, "Disable or enable a catalog.", "limnos.cli.catalog.catalogs:app"),
    "undrop": CommandEntry(
        OBJECTS, "Restore a deleted namespace, table or other object.", "limnos.cli.catalog.trash:undrop"
    ),
    "trash": CommandEntry(OBJECTS, "List deleted objects that can be restored.", "limnos.cli.catalog.trash:app"),
    "head": CommandEntry(
        OBJECTS, "Show the first rows of a table or of a fileset's file.", "limnos.cli.catalog.head:head"
    ),
    "files": CommandEntry(OBJECTS, "List the files of a fileset.", "limnos.cli.catalog.head:files"),
    "table": CommandEntry(
        OBJECTS, "Check a table's files and metadata, and mend its metadata.", "limnos.cli.catalog.table:app"
    ),
    "reports": CommandEntry(OBJECTS, "List scans of a table and commits to it.", "limnos.cli.catalog.reports:reports"),
    "snapshots": CommandEntry(
        OBJECTS, "List the states of a table that can be read.", "limnos.cli.catalog.snapshots:snapshots"
    ),
    "changes": CommandEntry(
        OBJECTS, "Show committed changes, and follow new ones.", "limnos.cli.catalog.changes:changes"
    ),
    "names": CommandEntry(
        OBJECTS, "Change names of namespaces so that they can nest.", "limnos.cli.catalog.nesting:app"
    ),
    "bulk": CommandEntry(
        OBJECTS, "Execute a file of changes, each with its outcome.", "limnos.cli.migration.bulk:bulk"
    ),
    "migrate": CommandEntry(
        OBJECTS, "Move tables in from another catalog, or out to one.", "limnos.cli.migration.migrate:app"
    ),
    "login": CommandEntry(ACCESS, "Sign in with a password, or in a browser.", "limnos.cli.identity.login:login"),
    "logout": CommandEntry(ACCESS, "End a session.", "limnos.cli.identity.login:logout"),
    "whoami": CommandEntry(ACCESS, "Show your user name on the server.", "limnos.cli.catalog.tree:whoami"),
    "profile": CommandEntry(ACCESS, "List and choose servers with a session.", "limnos.cli.identity.login:app"),
    "user": CommandEntry(ACCESS, "Add, remove, list, disable and enable users.", "limnos.cli.identity.users:app"),
    "group": CommandEntry(ACCESS, "Manage groups and their members.", "limnos.cli.identity.groups:app"),
    "role": CommandEntry(ACCESS, "Manage roles.", "limnos.cli.identity.roles:app"),
    "grant": CommandEntry(
        ACCESS, "Grant a role to a user or group, or privileges to a role.", "limnos.cli.identity.grants:grant"
    ),
    "revoke": CommandEntry(ACCESS, "Revoke a role, or privileges from a role.", "limnos.cli.identity.grants:revoke"),
    "access": CommandEntry(
        ACCESS, "Explain access decisions, and list users' access.", "limnos.cli.identity.access:app"
    ),
    "request": CommandEntry(
        ACCESS, "Ask for access, and answer such requests.", "limnos.cli.identity.access_requests:app"
    ),
    "owner": CommandEntry(ACCESS, "Show and set owners.", "limnos.cli.identity.owners:app"),
    "tag": CommandEntry(ACCESS, "Manage tags and their objects.", "limnos.cli.governance.tags:app"),
    "policy": CommandEntry(ACCESS, "Manage policies and their objects.", "limnos.cli.governance.policies:app"),
    "restriction": CommandEntry(
        ACCESS, "Restrict the rows and values that users may read.", "limnos.cli.governance.restrictions:app"
    ),
    "protect": CommandEntry(
        ACCESS, "Protect an object from being deleted.", "limnos.cli.governance.protection:protect"
    ),
    "unprotect": CommandEntry(ACCESS, "End the protection of an object.", "limnos.cli.governance.protection:unprotect"),
    "token": CommandEntry(ACCESS, "Create, list and revoke API tokens.", "limnos.cli.identity.tokens:app"),
    "audit": CommandEntry(
        ACCESS, "Show who did what to which object, by which privilege.", "limnos.cli.operation.audit:app"
    ),
    "spark": CommandEntry(WORK, "What Spark needs.", "limnos.cli.operation.spark:app"),
    "demo": CommandEntry(WORK, "Run the demonstration pipeline on real data.", "limnos.cli.operation.spark:demo"),
    "server": CommandEntry(
        SERVER, "Start a server, or check, migrate and configure one.", "limnos.cli.operation.server:app"
    ),
    "node": CommandEntry(SERVER, "List the server's nodes, and their settings.", "limnos.cli.operation.nodes:app"),
    "task": CommandEntry(SERVER, "List and retry the server's background tasks.", "limnos.cli.operation.tasks:app"),
    "storage": CommandEntry(
        SERVER, "Check a catalog's storage, manage keys of secrets.", "limnos.cli.operation.storage:app"
    ),
    "webhook": CommandEntry(SERVER, "Send committed changes to a URL.", "limnos.cli.operation.webhooks:app"),
    "completion": CommandEntry(SERVER, "Print the completion script of a shell.", "limnos.cli.completion:completion"),
}
"""The commands of the kernel, in the order of the help page."""

_KERNEL_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "create": ("metalake", "catalog", "namespace", "fileset", "model", *DECLARED),
    "catalog": ("disable", "enable"),
    "trash": ("list", "delete"),
    "table": ("check", "mend"),
    "names": ("check", "plan", "show", "migrate", "undo", "confirm"),
    "profile": ("list", "use"),
    "user": ("add", "remove", "list", "describe", "password", "disable", "enable", "secret"),
    "user secret": ("create", "accounts", "list", "end"),
    "group": ("create", "delete", "list", "describe", "add", "remove"),
    "role": ("create", "delete", "list", "describe"),
    "access": ("explain", "who", "what", "diff", "simulate", "holders", "reach"),
    "request": ("access", "list", "withdraw", "grant", "decline"),
    "owner": ("show", "set"),
    "tag": ("create", "delete", "list", "describe", "add", "remove"),
    "policy": ("create", "delete", "list", "describe", "enable", "disable", "add", "remove"),
    "restriction": ("set", "show", "remove"),
    "token": ("create", "list", "revoke"),
    "migrate": ("from", "to"),
    "spark": ("jars",),
    "server": ("start", "check", "migrate", "janitor", "backup", "restore", "config"),
    "node": ("list", "settings"),
    "task": ("list", "show", "retry"),
    "storage": ("check", "keys", "rotate-key"),
    "webhook": ("create", "list", "drop", "retry"),
}
"""The commands of each group of the kernel."""

_KERNEL_ALIASES: Final = {
    "trash ls": "trash list",
    "trash rm": "trash delete",
    "trash remove": "trash delete",
    "user create": "user add",
    "user delete": "user remove",
    "token delete": "token revoke",
    "webhook delete": "webhook drop",
    "restriction delete": "restriction remove",
    "restriction create": "restriction set",
    "restriction list": "restriction show",
    "user secret delete": "user secret end",
    "user show": "user describe",
    "group show": "group describe",
    "role show": "role describe",
    "tag show": "tag describe",
    "policy show": "policy describe",
    "request refuse": "request decline",
    "request deny": "request decline",
    "request create": "request access",
}
"""Other spellings of commands of the kernel's groups: one set of verbs, and those of former releases."""


class Operation(NamedTuple):
    """What `limnos VERB KIND` does: its arguments, and the command that performs it."""

    verb: str
    kind: str
    arguments: str
    command: str


def _operations(verb: str, kinds: str, *, arguments: str, command: str) -> list[Operation]:
    return [Operation(verb, kind, arguments, command.replace("KIND", kind)) for kind in kinds.split()]


_KERNEL_OPERATIONS: Final[tuple[Operation, ...]] = (
    *_operations("create", "metalake catalog", arguments="NAME", command="create KIND"),
    *_operations(
        "create", " ".join(("namespace", "fileset", "model", *DECLARED)), arguments="PATH", command="create KIND"
    ),
    *_operations("create", "user", arguments="NAME", command="user add"),
    *_operations("create", "group role tag", arguments="NAME", command="KIND create"),
    *_operations("create", "policy", arguments="NAME", command="policy create"),
    *_operations("create", "token", arguments="", command="token create"),
    *_operations("create", "secret", arguments="USER", command="user secret create"),
    *_operations("create", "restriction", arguments="NAME PATH", command="restriction set"),
    *_operations("create", "webhook", arguments="URL", command="webhook create"),
    *_operations("list", "metalake", arguments="", command="list --kind metalake"),
    *_operations("list", "catalog", arguments="", command="list"),
    *_operations(
        "list",
        " ".join(("namespace table view fileset model topic", *DECLARED)),
        arguments="[PATH]",
        command="list --only KIND",
    ),
    *_operations("list", "user group role token webhook node task profile", arguments="", command="KIND list"),
    *_operations("list", "tag policy", arguments="[PATH]", command="KIND list"),
    *_operations("list", "secret", arguments="USER", command="user secret list"),
    *_operations("list", "account", arguments="", command="user secret accounts"),
    *_operations("list", "restriction", arguments="PATH", command="restriction show"),
    *_operations("list", "file", arguments="PATH [DIRECTORY]", command="files"),
    *_operations("list", "report", arguments="TABLE", command="reports"),
    *_operations("list", "snapshot", arguments="TABLE", command="snapshots"),
    *_operations("list", "request", arguments="", command="request list"),
    *_operations("list", "trash", arguments="[PATH]", command="trash list"),
    *_operations("list", "change", arguments="", command="changes"),
    *_operations("list", "key", arguments="", command="storage keys"),
    *_operations("list", "setting", arguments="", command="node settings"),
    *_operations(
        "show",
        " ".join(("metalake catalog namespace table view fileset model topic", *DECLARED)),
        arguments="PATH",
        command="show --kind KIND",
    ),
    *_operations("show", "user group role tag policy", arguments="NAME", command="KIND describe"),
    *_operations("show", "owner", arguments="PATH", command="owner show"),
    *_operations("show", "restriction", arguments="PATH", command="restriction show"),
    *_operations("show", "task", arguments="ID", command="task show"),
    *_operations(
        "set", "metalake catalog namespace table view fileset model", arguments="PATH", command="set --kind KIND"
    ),
    *_operations("set", "owner", arguments="PATH OWNER", command="owner set"),
    *_operations("set", "tag policy", arguments="NAME PATH", command="KIND add"),
    *_operations("set", "password", arguments="USER", command="user password"),
    *_operations("set", "restriction", arguments="NAME PATH", command="restriction set"),
    *_operations("set", "profile", arguments="NAME", command="profile use"),
    *_operations("set", "protection", arguments="PATH", command="protect"),
    *_operations("rename", "metalake catalog tag", arguments="NAME NEW-NAME", command="rename --kind KIND"),
    *_operations(
        "rename", "namespace table view fileset model", arguments="SOURCE TARGET", command="rename --kind KIND"
    ),
    *_operations(
        "delete",
        " ".join(("metalake catalog namespace table view fileset model", *DECLARED)),
        arguments="PATH",
        command="delete --kind KIND",
    ),
    *_operations("delete", "user", arguments="NAME", command="user remove"),
    *_operations("delete", "group role tag policy", arguments="NAME", command="KIND delete"),
    *_operations("delete", "token", arguments="ID", command="token revoke"),
    *_operations("delete", "secret", arguments="USER ID", command="user secret end"),
    *_operations("delete", "restriction", arguments="NAME PATH", command="restriction remove"),
    *_operations("delete", "protection", arguments="PATH", command="unprotect"),
    *_operations("delete", "webhook", arguments="ID", command="webhook drop"),
    *_operations("delete", "trash", arguments="CATALOG ID", command="trash delete"),
)
"""The operations of the kernel, in the order of the help pages of verbs."""

ROOMS: Final = room_set([word.strip() for word in os.environ.get(VARIABLE, "").split(",")])
"""The rooms that are installed here, without those that the environment variable of `rooms.off` names. The server's
settings are not known here: if it lacks a room, its answer says so.
"""


def _commands() -> dict[str, CommandEntry]:
    """Return all commands in the order of the help page."""
    counts: Counter[str] = Counter()
    placed: list[tuple[int, int, str, CommandEntry]] = []
    for name, entry in _KERNEL_COMMANDS.items():
        counts[entry.topic] += 10
        placed.append((TOPICS.index(entry.topic), counts[entry.topic], name, entry))
    for room in ROOMS.on:
        for each in room.commands:
            topic = each.topic if each.topic in TOPICS else WORK
            placed.append((TOPICS.index(topic), each.place, each.name, CommandEntry(topic, each.summary, each.code)))
    return {name: entry for _, _, name, entry in sorted(placed, key=lambda each: each[:2])}


def _all_operations() -> tuple[Operation, ...]:
    """Return all operations in the order of the help pages."""
    placed = [(number * 10, each) for number, each in enumerate(_KERNEL_OPERATIONS, 1)]
    placed += [
        (each.place, Operation(each.verb, each.kind, each.arguments, each.command))
        for room in ROOMS.on
        for each in room.operations
    ]
    return tuple(each for _, each in sorted(placed, key=lambda pair: pair[0]))


def room_process(word: str) -> Callable[[Sequence[str], Callable[[Sequence[str]], int]], int] | None:
    """Return the function of the process that a room starts with a first argument; None for another word."""
    for room in ROOMS.on:
        for each in room.processes:
            if each.word == word:
                return cast("Callable[[Sequence[str], Callable[[Sequence[str]], int]], int]", load(each.serve))
    return None


_ADDED: Final = [each for room in ROOMS.on for each in room.commands]
COMMANDS: Final = _commands()
"""Every command, in the order of the help page."""
GROUPS: Final = _KERNEL_GROUPS | {each.name: each.group for each in _ADDED if each.group}
"""The commands of each group."""
GROUP_ALIASES: Final = _KERNEL_ALIASES | dict(pair for each in _ADDED for pair in each.aliases)
"""Other spellings of groups' commands: one set of verbs, and those of former releases."""
OPERATIONS: Final = _all_operations()
"""Every operation, in the order of the help pages of verbs."""

BY_VERB_AND_KIND: Final = {(each.verb, each.kind): each for each in OPERATIONS}

PLURALS: Final = {
    "change": "changes",
    "metalake": "metalakes",
    "namespace": "namespaces",
    "file": "files",
    "trash": "trash",
    "maintenance": "maintenance",
    "policy": "policies",
    "lineage": "lineage",
    "protection": "protection",
    "password": "password",
}
KIND_ALIASES: Final = {
    "schema": "namespace",
    "schemas": "namespace",
    "database": "namespace",
    "databases": "namespace",
    "job-template": "template",
    "job-templates": "template",
    "job_template": "template",
    "job_templates": "template",
    "service-account": "account",
    "service-accounts": "account",
    "warehouse": "catalog",
    "warehouses": "catalog",
}
"""Other words for kinds: those of Gravitino, of SQL and of other catalogs."""


def plural(kind: str) -> str:
    """Return the plural of a kind, as `list` takes it."""
    return PLURALS.get(kind, f"{kind}s")


KIND_WORDS: Final = {
    **{each.kind: each.kind for each in OPERATIONS},
    **{plural(each.kind): each.kind for each in OPERATIONS},
    **KIND_ALIASES,
}
"""Every word for a kind, in the singular and plural, and the kind."""


def absence_of(words: Sequence[str]) -> str:
    """Return why typed words are no command here, if they are one of a room that is switched off; otherwise empty."""
    verb = VERB_ALIASES.get(words[0], words[0]) if words else ""
    for off in ROOMS.off:
        typed = [each.name for each in off.manifest.commands if each.name == verb]
        typed += [
            f"{each.verb} {words[1]}"
            for each in off.manifest.operations
            if each.verb == verb and len(words) > 1 and words[1] in (each.kind, plural(each.kind))
        ]
        if typed:
            return f"'limnos {typed[0]}' belongs to {off.manifest.name}, which is off here: {off.why}"
    return ""
