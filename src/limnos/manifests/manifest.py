# SPDX-License-Identifier: Apache-2.0
"""The manifest of a room: one value that says everything that the room adds.

A reference is a text `module:name`, as in entry points. `load` imports what it names. Reading a manifest imports no
code of the room.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple


class RoutesEntry(NamedTuple):
    """Routes that a room adds to a protocol of another part.

    - `protocol`: the name of that protocol, `admin` for the own API.
    - `routes`: a reference to a sequence of `limnos.http.routing.Route`.
    - `paths`: patterns with which the paths of these routes begin, from the server's root. A server without the room
      answers 404 with the reason there. `{name}` stands for one segment.
    """

    protocol: str
    routes: str
    paths: tuple[str, ...]


class ProtocolEntry(NamedTuple):
    """A protocol that a room serves.

    - `name`: its name in metrics and logs.
    - `protocol`: a reference to a function of the settings that returns a `limnos.http.route_targets.Protocol`.
    - `paths`: patterns with which its paths begin, as in `RoutesEntry`.
    - `error`: a reference to a function (error, request_id=, operation=) that returns the protocol's error response.
    """

    name: str
    protocol: str
    paths: tuple[str, ...]
    error: str


class TasksEntry(NamedTuple):
    """Background tasks of the store: a reference to a tuple of `limnos.app.task_kind.TaskKind`, and their names.

    A server without the room leaves tasks of these names to other nodes.
    """

    kinds: str
    names: tuple[str, ...]


class OffloadedEntry(NamedTuple):
    """Offloaded work: a reference to a mapping from names to functions of bytes, and the prefix of these names.

    It also runs while the room is off.
    """

    prefix: str
    functions: str


class SectionEntry(NamedTuple):
    """A section of the settings: its name, and a reference to its class, a `limnos.config.section.SettingsSection`."""

    name: str
    section: str


class ClientEntry(NamedTuple):
    """A resource of the client: the attribute of the client, and a reference to the class of the resource."""

    attribute: str
    resource: str


class Command(NamedTuple):
    """A command of the command line.

    - `name`: the word after `limnos`.
    - `topic`: the heading under which the help page has it.
    - `place`: its place below that heading; the kernel's commands have 10, 20, 30 and so on.
    - `summary`: its line on the help page.
    - `code`: a reference to its function, or to the `cyclopts.App` of a group.
    - `group`: the commands of the group; empty for a single command.
    - `aliases`: other spellings of the group's commands, each with the command.
    """

    name: str
    topic: str
    place: int
    summary: str
    code: str
    group: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()


class CommandOperation(NamedTuple):
    """What `limnos VERB KIND ARGUMENTS` does: the command that performs it. `place` orders the kinds of a verb, as
    `Command.place` orders commands.
    """

    verb: str
    kind: str
    arguments: str
    command: str
    place: int = 1000


class ProcessEntry(NamedTuple):
    """A process of the command line that the room starts, and that no user types.

    - `word`: the first argument of its program; it begins with `__`.
    - `serve`: a reference to a function (arguments, execute) that returns the exit code. `execute` runs a command line
      of the product and returns its exit code.
    """

    word: str
    serve: str


class PagesEntry(NamedTuple):
    """Pages of the console: references to a sequence of its routes and to its pages in the navigation ("" for none),
    and patterns of paths below `/console`, as in `RoutesEntry`.
    """

    routes: str
    paths: tuple[str, ...]
    navigation: str = ""


class TabEntry(NamedTuple):
    """A tab that a room adds to the console's pages of tables.

    - `name`, `text`: its name in addresses, and its label.
    - `before`: names of tabs; it stands before the first of them that the page of the table has.
    - `content`: a reference to a function (page_request, address, is_lance=) that returns a
      `limnos.rooms.console.http.sheets.TabPart`.
    - `is_lance`: whether only pages of Lance tables have it, or only others; None for all.
    """

    name: str
    text: str
    before: tuple[str, ...]
    content: str
    is_lance: bool | None = None


class HomeEntry(NamedTuple):
    """What a room adds to the first page of the console.

    - `needs`: a reference to a function (page_request, metalake, catalogs=) that returns a
      `limnos.rooms.console.http.home_needs.HomeNeeds`: what needs the user.
    - `place`: its place among those of other rooms.
    """

    needs: str
    place: int = 1000


class ConnectorEntry(NamedTuple):
    """A connector: the provider of its catalogs, their type, and a reference to its `Connector`."""

    provider: str
    connector: str


class Manifest(NamedTuple):
    """Everything that a room adds to the product. A room without a part leaves out its field.

    - `name`: the word in settings and messages; lower case, unique among the installed rooms.
    - `about`: what the room does, as one clause for messages and documentation.
    - `needs`: the names of rooms without which it does not work.
    - `switch`: a setting `section.key` of an earlier release that switches it off as well, if false.
    - `protocols`, `routes`: what it serves over HTTP.
    - `kinds`: words of the kinds of objects that only this room creates.
    - `tables`: names of its tables in the store.
    - `migrations`: the package with the migrations of its tables, if these are not those of the kernel (decision
      record 0246).
    - `tasks`: its background tasks.
    - `cleanups`: references to `limnos.services.request.task_context.FileCleanup`, which delete files that nothing
      refers to in each round of the janitor.
    - `offloaded`: its functions that run in processes for offloaded work.
    - `statements`: a reference to a `limnos.services.catalog.stored_statements.StoredStatements`, which reads the
      statements that the room has stored in records of tables and functions, also while the room is off.
    - `notes`: a reference to a function of the settings that returns sentences for `server check`: what is missing.
    - `parts`: a reference to a function (services, settings) that registers components before the first request, such
      as processes for offloaded work.
    - `loops`: references to functions of a `limnos.app.room_parts.LoopStart` that return a coroutine, which runs
      beside requests, or None.
    - `close`: a reference to a coroutine function of the services, which ends what `parts` began.
    - `settings`: its sections of the settings.
    - `client`: its resources of the client.
    - `commands`, `operations`: its commands.
    - `processes`: processes of its commands that answer further command lines.
    - `pages`: its pages of the console.
    - `tabs`: its tabs on the console's pages of tables.
    - `home`: what it adds to the first page of the console.
    - `drop_sheets`: a reference to a function (page_request, address) that returns
      `limnos.rooms.console.http.sheets.Sheet`s for the page of the console that drops an object.
    - `offers`: modules of the room that routes and pages of other rooms may import. Only the part of the product that
      this room serves loads those routes and pages, so they need this room and not the other way round.
    - `packages`: packages beside the room's folder that belong to it, because programs of users import them by name.
      Only the room imports them.
    - `docs`: its pages of the documentation, below docs/.
    - `connectors`: catalogs of external systems.
    """

    name: str
    about: str
    needs: tuple[str, ...] = ()
    switch: str = ""
    protocols: tuple[ProtocolEntry, ...] = ()
    routes: tuple[RoutesEntry, ...] = ()
    kinds: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    migrations: str = ""
    tasks: tuple[TasksEntry, ...] = ()
    cleanups: tuple[str, ...] = ()
    offloaded: tuple[OffloadedEntry, ...] = ()
    statements: str = ""
    notes: str = ""
    parts: str = ""
    loops: tuple[str, ...] = ()
    close: str = ""
    settings: tuple[SectionEntry, ...] = ()
    client: tuple[ClientEntry, ...] = ()
    commands: tuple[Command, ...] = ()
    operations: tuple[CommandOperation, ...] = ()
    processes: tuple[ProcessEntry, ...] = ()
    pages: tuple[PagesEntry, ...] = ()
    tabs: tuple[TabEntry, ...] = ()
    home: tuple[HomeEntry, ...] = ()
    drop_sheets: str = ""
    offers: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()
    connectors: tuple[ConnectorEntry, ...] = ()


def load(reference: str) -> object:
    """Return what a reference `module:name` names. Raises ImportError or AttributeError if it does not exist."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)
