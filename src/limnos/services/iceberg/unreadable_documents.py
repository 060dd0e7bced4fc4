# SPDX-License-Identifier: Apache-2.0
"""Metadata documents that some readers refuse, because an older release stored them: of one table, and of a store.

Must not know any wire format. Decision record 0195.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from limnos.formats.iceberg.mending import describe_problem, find_problems
from limnos.formats.iceberg.metadata import decode
from limnos.formats.iceberg.registered_metadata import ReaderProblem
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest
from limnos.services.request.node_services import NodeServices
from limnos.services.request.offloaded_work import is_heavy

NAMED_MAX: Final = 1000
"""The maximum number of documents that a search names."""


async def reader_problems(services: NodeServices, document: MetadataDocument) -> list[str]:
    """Return why some readers refuse a table's document, and how to correct that."""
    if not is_heavy(document):
        return [describe_problem(each) for each in find_problems(decode(document.body))]
    (problems,) = await services.offloader.do("iceberg-reader-problems", document.body)
    return msgspec.json.decode(problems, type=list[str])


@dataclass(slots=True)
class UnreadableDocuments:
    """The problems of the first `NAMED_MAX` documents that have any, by the id of the table or view."""

    problems: dict[int, list[ReaderProblem]] = field(default_factory=dict)

    def inspect(self, document: MetadataDocument) -> None:
        """Keep the problems of a document, if it has any."""
        if len(self.problems) >= NAMED_MAX or not document.metadata_location:
            return  # a Lance table has no metadata file of Iceberg
        try:
            problems = find_problems(decode(document.body))
        except BadRequest as error:
            problems = [ReaderProblem(error.message, "register the table again with another metadata file (overwrite)")]
        if problems:
            self.problems[document.node_id] = problems
