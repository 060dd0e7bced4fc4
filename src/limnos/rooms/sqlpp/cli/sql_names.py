# SPDX-License-Identifier: Apache-2.0
"""Names that statements cannot find: the dataverse of the command line, and datasets of another dataverse.

Only names that the user may see are proposed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from limnos.cli.errors import StoppedError
from limnos.cli.lookups import close_path
from limnos.cli.sentences import quote_command
from limnos.client.errors import ClientError
from limnos.names.display import parse, render
from limnos.names.errors import InvalidName
from limnos.rooms.sqlpp.language.printer.base import path as dataset_path

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.names.path import Levels

NO_DATAVERSE: Final = "ASX1063"
NAMED_MAX: Final = 3
"""How many datasets a hint names."""
_DATASET: Final = re.compile(r"Cannot find dataset (\S+) in dataverse (\S+) nor")
_DATAVERSE: Final = re.compile(r"Cannot find dataverse with name (\S+)")
_OTHER_CATALOG: Final = " is a catalog, and statements read only the catalog "
"""The part of the server's message about a path that begins with the name of a catalog."""
_DATAVERSES: Final = "select value d.DataverseName from Metadata.`Dataverse` d"


def dataverse_require(client: Client, dataverse: Levels, *, catalog: str) -> None:
    """Check that a dataverse exists: requests with another one run in `Default`, as those of AsterixDB do.

    Raises StoppedError if it does not, and ClientError.
    """
    try:
        client.sqlpp.run(f"use {dataset_path(dataverse)};")
    except ClientError as error:
        if error.code != NO_DATAVERSE:
            raise
        message = f"there is no dataverse {render(dataverse)} that you may read"
        below = dataverse[1:]
        if dataverse[0] == catalog and below:
            hint = f"names begin below the catalog: '--dataverse {render(below)}'"
        elif dataverse == (catalog,):
            hint = f"{catalog} is the catalog: leave out --dataverse, or name a namespace in it"
        else:
            hint = f"{quote_command(['sql', '-c', _DATAVERSES])} lists them"
        raise StoppedError(message, code="not-found", hint=hint) from None


def hint_for_names(client: Client, message: str, *, catalog: str) -> str | None:
    """Return the hint for an error about a missing dataset or dataverse: a similar name, the same name elsewhere, or a
    table of `limnos ask`; None for other errors, and where nothing is near.
    """
    dataset, dataverse = _DATASET.search(message), _DATAVERSE.search(message)
    if dataset is None and dataverse is None:
        return None
    if dataverse is not None and _OTHER_CATALOG in message:
        below = dataverse[1].rstrip(":")
        lists = quote_command(["list", "tables", below])
        return f"{lists} lists its tables, and {quote_command(['head', f'{below}.TABLE'])} shows rows of one"
    try:
        names = (
            (*parse(dataset[2]), *parse(dataset[1]))
            if dataset is not None
            else parse(dataverse[1] if dataverse is not None else "")
        )
        near = _similar_paths(client, (catalog, *names))
        if near:
            return f"did you mean {' or '.join(dataset_path(each[1:]) for each in near)}?"
        if dataset is not None and names[-1] in {table.name for table in client.system_tables.list()}:
            return f"{names[-1]} is a table of the tree: {quote_command(['ask', f'from {names[-1]}'])} reads it"
        if dataverse is not None:
            return f"{quote_command(['sql', '-c', _DATAVERSES])} lists the dataverses that you may read"
    except (ClientError, InvalidName):
        return None
    return None


def _similar_paths(client: Client, path: Levels) -> list[Levels]:
    """Return the path of visible objects with a similar path, then of those with the same name in the same catalog."""
    hits = [each.path for each in client.searches.find(path[-1]).hits]
    same = [each for each in hits if each[:1] == path[:1] and each[-1] == path[-1] and each != path]
    close = close_path(path)
    return [*([] if close is None else [close]), *(each for each in same if each != close)][:NAMED_MAX]
