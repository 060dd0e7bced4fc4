# SPDX-License-Identifier: Apache-2.0
"""Answers about paths that are refused or missing: what the path is, or the nearest path that the caller may know.

A server answers a hidden object like a missing one, so a refusal alone does not show that the object exists. The answer
here is made of what the caller may list. It advises to ask for access only where there may be an object of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from limnos.cli.hints.failed_calls import hint_for
from limnos.cli.hints.missing_objects import NO_COLUMN, NO_NAME, exchanged_arguments
from limnos.cli.hints.typed_command import TypedCommand, path_parts
from limnos.cli.lookups import (
    KnownPath,
    close_path,
    exists,
    is_listed_table,
    known_path,
    metalake_names,
    path_below_a_catalog,
    table_format,
)
from limnos.cli.output import flag_values
from limnos.cli.signatures import signature_of
from limnos.client.errors import ClientError, DeniedError, NotFoundError
from limnos.names import display
from limnos.names.errors import InvalidName

_MISSING: Final = re.compile(r"(Namespace|Table|View|Fileset|Model|Topic|Schema) does not exist\b")
"""Messages that name the kind of a missing object."""
_CONTAINERS: Final = frozenset({"catalog", "namespace", "schema"})
_TARGETS: Final = frozenset({"create", "undrop", "trash", "request", "access", "bulk", "import"})
"""Commands whose path is that of an object to be, of a deleted one, or one that is only asked about."""
_READS: Final = {"files": ("fileset",), "list": ("catalog", "namespace"), "tree": ("catalog", "namespace")}
"""The kinds that some commands take."""

_MASKS: Final = frozenset({"masks", "mask", "filters", "filter"})
"""Words for the parts of restrictions, which have no list of their own."""
_NAMED_KINDS: Final[tuple[Literal["user", "group", "role", "tag"], ...]] = ("user", "group", "role", "tag")
"""The kinds of objects whose names stand beside those of catalogs."""
_PARTS_OF_OBJECTS: Final = 3
"""The minimum number of parts of the path of an object in a namespace."""


class PathAnswer(NamedTuple):
    """The message about a path, and the next step. An empty message leaves the server's message."""

    message: str
    hint: str


def path_answer(error: ClientError, typed: TypedCommand) -> PathAnswer | None:
    """Return the answer to a refused call or a missing object whose path the caller knows in part or as another kind;
    None for other failures.
    """
    is_missing = isinstance(error, NotFoundError) or "does not exist" in error.message
    path = typed.path
    if NO_COLUMN in error.message or NO_NAME.match(error.message):  # the object is known, a name beside it is not
        return None
    is_target = typed.words[0] in _TARGETS and _MISSING.match(error.message) is None
    if not path or is_target or not (is_missing or isinstance(error, DeniedError)):
        return None
    if (file := _file_of(typed)) is not None:
        return file
    if ". There is a table of another system: " in error.message:
        return _external_table(path, typed)
    if (known_object := known_path(path)) is None:
        has_table = is_missing and len(path) >= _PARTS_OF_OBJECTS and is_listed_table(path)
        return _external_table(path, typed) if has_table else None
    if known_object.length == 0:
        return _without_catalog(path, error, typed=typed)
    if known_object.length < len(path):
        return _in_part(path, known_object, typed=typed)
    kinds = _kinds_of(error, typed)
    return _of_other_kind(path, known_object.kinds, wrong=kinds, typed=typed) if kinds else None


def _external_table(path: Sequence[str], typed: TypedCommand) -> PathAnswer:
    """Return the answer for a command on rows, files or states of a table of another system, which the server lacks."""
    spelled = display.render(path)
    message = f"{spelled} is a table of another system, which has its rows, files and states"
    shows = typed.command("show", spelled)
    return PathAnswer(message, f"'{shows}' has its columns; tags, owners, grants and the audit are here")


def _kinds_of(error: ClientError, typed: TypedCommand) -> Sequence[str]:
    """Return the kinds of objects that a failed command is for; empty if they are not known."""
    if typed.words[0] != "maintenance" and (kind := next(iter(flag_values(typed.tokens, "--kind")), "")):
        return [kind]
    if (kinds := _READS.get(typed.words[0], ())) and "--only" not in typed.tokens:
        return kinds
    missing = _MISSING.match(error.message)
    if missing is not None and ".".join(typed.path[1:]) in error.message:
        return [missing[1].lower().replace("schema", "namespace")]
    decision = error.decision
    if decision is None or decision.target_name != display.render(typed.path):
        return ()
    kind = getattr(decision.target, "kind", "")
    return [kind] if kind else ()


def _of_other_kind(
    path: Sequence[str], kinds: Sequence[str], *, wrong: Sequence[str], typed: TypedCommand
) -> PathAnswer | None:
    """Return the answer for an object of another kind than the command takes; None if it has that kind."""
    if set(kinds) & {each.replace("schema", "namespace") for each in wrong}:
        return None
    spelled = display.render(path)
    message = f"{spelled} is {_with_article(kinds[0])}, not {_with_article(wrong[-1])}"
    return PathAnswer(message, _shows(path, kinds, typed=typed))


def _shows(path: Sequence[str], kinds: Sequence[str], *, typed: TypedCommand) -> str:
    """Return the command that shows a visible object."""
    spelled = display.render(path)
    if typed.words[0] == "head" and "fileset" in kinds:
        reads = typed.command("head", spelled, "--file", "FILE")
        return f"'{typed.command('files', spelled)}' lists its files; '{reads}' shows rows of one"
    if _CONTAINERS & {*kinds}:
        lists = f"'{typed.command('list', spelled)}' lists what is in it"
        changes = f", '{typed.command('audit', '--path', spelled)}' has who changed it"
        return f"{lists}{changes if typed.words[0] == 'snapshots' else ''}"
    rest = " and its columns" if kinds[0] in {"table", "view"} else ""
    return f"'{typed.command('show', spelled)}' shows it{rest}"


def _in_part(path: Sequence[str], known: KnownPath, *, typed: TypedCommand) -> PathAnswer | None:
    """Return the answer for a path whose first parts are known: below an object that contains none, or that has a part
    with a close name. Otherwise the nearest container; None if the path's last part alone is unknown.
    """
    above = path[: known.length]
    if not _CONTAINERS & {*known.kinds}:
        message = f"{display.render(above)} is {_with_article(known.kinds[0])}: no object is below it"
        if typed.words[:2] in {("set", "tag"), ("tag", "add")} and "table" in known.kinds:
            column = display.render(path[known.length :])
            tag = typed.words[2] if len(typed.words) > 2 else "TAG"
            if table_format(above) == "lance":
                plain = typed.command("set", "tag", tag, display.render(above))
                return PathAnswer(message, f"columns of Lance tables have no tags: '{plain}' tags the table")
            again = typed.command("set", "tag", tag, display.render(above), "--column", column)
            return PathAnswer(message, f"'{again}'")
        return PathAnswer(message, _shows(above, known.kinds, typed=typed))
    if (version := _version_of(path, typed=typed)) is not None:
        return version
    if (near := close_path(path)) is not None:
        return PathAnswer("", suggest_command(typed, near))
    return None


def _version_of(path: Sequence[str], *, typed: TypedCommand) -> PathAnswer | None:
    """Return the answer for a path such as `model/0`, which names a version; None if there is no such model."""
    name, slash, version = path[-1].rpartition("/")
    model = (*path[:-1], name)
    if (
        not slash
        or (known_object := known_path(model)) is None
        or known_object.length < len(model)
        or "model" not in known_object.kinds
    ):
        return None
    message = f"'{version}' is a version of the model {display.render(model)}: Gravitino's clients change versions"
    return PathAnswer(message, f"'{typed.command('show', display.render(model))}' shows the model and its versions")


def _file_of(typed: TypedCommand) -> PathAnswer | None:
    """Return the answer for a path such as `files.raw.scans/1/a.csv`, a fileset's with a file's; None for others."""
    text = next((word for word in typed.words[1:] if "/" in word and "`" not in word and "://" not in word), "")
    fileset, _, file = text.partition("/")
    path = path_parts(fileset)
    if (
        len(path) < _PARTS_OF_OBJECTS
        or (known_object := known_path(path)) is None
        or "fileset" not in known_object.kinds
    ):
        return None
    if known_object.length < len(path):
        return None
    if typed.words[0] == "head":
        again = typed.command("head", fileset, "--file", file)
        return PathAnswer("the file of a fileset is named by --file", f"'{again}'")
    message = f"'/{file}' is in the fileset {fileset}"
    if typed.is_removal:
        message += ": its clients (gvfs, S3) delete and rename files"
    return PathAnswer(message, f"'{typed.command('files', fileset, f'/{file}')}' lists its files there")


def _in_another_metalake(path: Sequence[str], *, typed: TypedCommand) -> PathAnswer | None:
    """Return the answer for a path that begins with a metalake; None for others."""
    if path[0] not in (metalake_names() or ()) or path[0] == typed.metalake:
        return None
    message = f"{path[0]} is a metalake, and no catalog that you may know"
    signature = signature_of(typed.words)
    if len(path) > 1:
        if typed.is_removal:
            spelled = display.render(path[1:])
            shows = typed.spell("show", spelled, "--metalake", path[0])
            return PathAnswer(message, f"a metalake is chosen by --metalake: '{shows}' shows the object")
        again = [display.render(path[1:]) if _is_path(token, path) else token for token in typed.tokens]
        return PathAnswer(message, f"'{TypedCommand(again).again('--metalake', path[0])}'")
    if typed.words[0] in {"list", "tree"}:
        return PathAnswer(message, f"'{typed.spell(typed.words[0], '--metalake', path[0])}'")
    if signature is None or "--kind" not in signature.flags or "--kind" in typed.tokens:
        return None
    return PathAnswer(message, f"'{typed.again('--kind', 'metalake')}'")


def _without_catalog(path: Sequence[str], error: ClientError, *, typed: TypedCommand) -> PathAnswer:
    """Return the answer for a path that begins with no catalog that the caller may know."""
    message = f"there is no catalog '{path[0]}', or you may not know of it"
    if (elsewhere := _in_another_metalake(path, typed=typed)) is not None:
        return elsewhere
    if len(path) == 1 and (swapped := exchanged_arguments(typed)) is not None:
        return PathAnswer(f"{message}; the arguments are exchanged", f"'{swapped}'")
    if len(path) == 1 and (answer := _beside_catalogs(path[0], error, typed=typed)) is not None:
        return answer
    if (near := _near_path(path)) is not None:
        begins = near[-len(path) :] == tuple(path) or near == tuple(path[1:])
        reason = " A path begins with its catalog" if begins else ""
        return PathAnswer(message, f"{suggest_command(typed, near)}{reason}")
    lists = f"'{typed.command('list')}' lists the catalogs that you may know"
    if typed.words[0] == "rename" and len(path) == 1:
        message += "; users, groups and roles keep their names"
    if path[0] == typed.metalake:
        signature = signature_of(typed.words)
        has_kind = signature is not None and "--kind" in signature.flags and typed.words[0] not in {"list", "tree"}
        again = f"'{typed.again('--kind', 'metalake')}'" if has_kind and len(path) == 1 else lists
        return PathAnswer(f"{path[0]} is the metalake, and no catalog that you may know", again)
    if not isinstance(error, DeniedError):
        return PathAnswer(message, lists)
    message = f"there is no catalog '{path[0]}', or you may not load it; if there is one: {error.message}"
    return PathAnswer(message, f"{lists}; {hint_for(error, typed)}")


def _beside_catalogs(name: str, error: ClientError, *, typed: TypedCommand) -> PathAnswer | None:
    """Return the answer for the name of a user, group, role or tag, or for a word that means restrictions.

    Returns None for others. A caller whom the server refused may know of none of them.
    """
    if name in _MASKS and typed.words[0] in {"list", "show"}:
        lists = typed.command("list", "restrictions", "PATH")
        return PathAnswer(f"{name} belong to restrictions", f"'{lists}' lists those of a table or namespace")
    if name in {"all", "everything"} and typed.words == ("list", name):
        message = f"there is no catalog '{name}', or you may not know of it"
        return PathAnswer(message, f"'{typed.command('list', '--recursive')}' lists all objects")
    if isinstance(error, DeniedError):
        return None
    if typed.words[:2] == ("restriction", "show") and exists("user", name):
        what = typed.command("access", "what", name)
        return PathAnswer(f"{name} is a user, and no object", f"'{what}' has the objects, and which are restricted")
    if typed.words[:2] == ("tag", "list") and exists("tag", name):
        return PathAnswer(f"{name} is a tag, and no object", f"'{typed.command('show', 'tag', name)}' has its objects")
    if typed.words[0] != "show":
        return None
    kind = next((each for each in _NAMED_KINDS if exists(each, name)), None)
    if kind is None:
        return None
    return PathAnswer(f"{name} is {_with_article(kind)}, and no catalog", f"'{typed.command('show', kind, name)}'")


def hint_for_name(typed: TypedCommand) -> str:
    """Return the next step after an illegal name: the path with dots, if it was typed with slashes."""
    path = typed.path
    if any("://" in word for word in typed.words[1:]):
        lists = f"'{typed.command('list')}' lists the catalogs, '{typed.command('find', 'kind:fileset')}' the filesets"
        return f"a location is no path, and its files are listed by the store's tools: {lists}"
    spaced = [re.sub(r" *\. *", ".", word.strip()) for word in typed.tokens if "`" not in word]
    if not path and len(spaced) == len(typed.tokens) and spaced != list(typed.tokens):
        return f"'{TypedCommand(spaced).again()}'"
    if any(word.startswith("@") for word in typed.words[1:]):
        return f"'{typed.command('list', 'filesets')}': a stage is a fileset here"
    if (file := _file_of(typed)) is not None:
        return file.hint
    if any("/" in part for part in path):
        near = _near_path(path) or [part for each in path for part in each.split("/") if part]
        return f"a path has dots, not slashes: {with_path(typed, near)}"
    return "write a path as catalog.namespace.table and put parts with special characters in `back-quotes`"


def _near_path(path: Sequence[str]) -> tuple[str, ...] | None:
    """Return the visible path that is meant: without the metalake, with dots instead of slashes, with its catalog, or
    with a close name.
    """
    spelled = tuple(part for each in path for part in each.split("/") if part)
    for each in (path[1:], spelled, spelled[1:]):
        if (
            each
            and tuple(each) != tuple(path)
            and (known_object := known_path(each))
            and known_object.length == len(each)
        ):
            return tuple(each)
    return path_below_a_catalog(path) or close_path(path)


def suggest_command(typed: TypedCommand, path: Sequence[str]) -> str:
    """Return the typed command with the path that is meant. For a deletion or a rename it is a command that shows the
    object: no answer proposes to delete or rename another object than the one that was typed.
    """
    if typed.is_removal:
        spelled = display.render(path)
        return f"the nearest is {spelled}: '{typed.command('show', spelled)}' shows it"
    return f"did you mean {with_path(typed, path)}?"


def with_path(typed: TypedCommand, path: Sequence[str]) -> str:
    """Return the typed command in quotes with another path in the place of its path."""
    spelled = display.render(path)
    again = [spelled if _is_path(token, typed.path) else token for token in typed.tokens]
    return f"'{TypedCommand(again).again()}'"


def _is_path(token: str, path: Sequence[str]) -> bool:
    try:
        return not token.startswith("-") and tuple(display.parse(token)) == tuple(path)
    except InvalidName:
        return False


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeio' else 'a'} {kind}"
