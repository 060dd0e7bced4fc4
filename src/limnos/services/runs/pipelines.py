# SPDX-License-Identifier: Apache-2.0
"""Pipelines as objects of a metalake: find and list.

Must not know any wire format. A pipeline is a job template, which is a node of the metalake. The room of pipelines
declares, loads and drops them.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from limnos.model.entities import Node
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.model.privileges import escape_percent
from limnos.model.records import JobTemplateRecord
from limnos.model.runs import PipelineDeclaration
from limnos.services.request.request_view import RequestView
from limnos.services.runs.job_templates import record_of, template_find, templates_list


class PipelineVersion(NamedTuple):
    """A pipeline, and the declaration of the requested version."""

    node: Node
    declaration: PipelineDeclaration | None = None

    @property
    def record(self) -> JobTemplateRecord:
        """The pipeline's record: its newest version, and its comment."""
        return cast("JobTemplateRecord", self.node.record)


def pipeline_find(request_view: RequestView, name: str) -> PipelineVersion:
    """Return a pipeline by name, without its declaration, if the caller owns it or may use it.

    Raises NotFound, NotInUse, PermissionDenied.
    """
    try:
        node = template_find(request_view, name)
    except NotFound as missing:
        if missing.kind != Kind.JOB_TEMPLATE.word:
            raise
        text = f"Pipeline {name} does not exist in metalake {request_view.metalake.name}"
        raise NotFound(escape_percent(text), kind="pipeline") from None
    return PipelineVersion(require_pipeline_type(node))


def pipelines_list(request_view: RequestView) -> list[PipelineVersion]:
    """Return the pipelines that the caller may load, by name, without their declarations. Raises NotInUse,
    PermissionDenied.
    """
    return [PipelineVersion(node) for node in templates_list(request_view) if not record_of(node).job_type]


def require_pipeline_type(node: Node) -> Node:
    """Return the node if it is a pipeline. Raises NotFound for a job template of another type."""
    if not record_of(node).job_type:
        return node
    raise NotFound(
        f"{node.name} is a job template of type {record_of(node).job_type} and not a pipeline: run and drop it over"
        " Gravitino REST, or with 'limnos job'",
        kind=Kind.JOB_TEMPLATE.word,
    )
