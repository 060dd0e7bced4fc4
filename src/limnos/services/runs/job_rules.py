# SPDX-License-Identifier: Apache-2.0
"""Job rules: the files, environment variables and Spark properties that the settings allow for jobs of the server, and
the checked definition of a job.

Checks string values only: the node that runs a job resolves symbolic links and checks the real path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from os.path import normpath
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from limnos.formats.gravitino.job_templates import SHELL, TemplateContent
from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.services.request.node_services import ComponentKey

PIPELINE: Final = "pipeline"
"""The type of the jobs of schedules, whose files are in the store (`services.runs.schedules`)."""
CONF_MAX: Final = 16 << 10
"""The maximum length of a job's own configuration values as JSON, in characters."""


class JobRules(NamedTuple):
    """The settings that limit the jobs of the server. By default a server runs no jobs."""

    enabled: bool = False
    allowed: tuple[str, ...] = ()
    """The files that jobs may use; a directory stands for everything below it."""
    environment: tuple[str, ...] = ()
    """The names of environment variables that a job may set; `*` matches any characters."""
    spark_configs: tuple[str, ...] = ()
    """The names of Spark properties that a job may set; `*` matches any characters."""
    waiting_max: int = 100
    """The maximum number of unfinished jobs of one user in a metalake."""
    is_confinable: bool = True
    """Whether this machine can confine jobs, or need not."""

    pipelines: bool = False
    """Whether jobs run scheduled pipelines, whose files users upload."""

    def require_pipelines(self) -> None:
        """Raise UnsupportedOperation if this server runs no jobs, or no scheduled pipelines. It names all settings that
        are missing.
        """
        if not self.enabled and not self.pipelines:
            raise UnsupportedOperation(
                "This server runs no jobs, and no scheduled pipelines, because their SQL and Python come from users:"
                " its operator can enable them with the settings jobs.executor = local and jobs.pipelines = true"
            )
        self.require_enabled()
        if not self.pipelines:
            raise UnsupportedOperation(
                "This server runs no scheduled pipelines, because their SQL and Python come from users: its operator"
                " can enable them with the setting jobs.pipelines = true"
            )

    def require_enabled(self) -> None:
        """Raise UnsupportedOperation if this server runs no jobs, or its machine cannot confine them."""
        if not self.enabled:
            raise UnsupportedOperation(
                "This server does not run jobs: its operator can enable them with the setting jobs.executor = local"
            )
        if not self.is_confinable:
            raise UnsupportedOperation(
                "This server does not run jobs, because its machine cannot confine them: 'limnos server check' tells"
                " its operator what is missing"
            )


class JobWork(msgspec.Struct, frozen=True):
    """The definition of one job: its template's content with the placeholders replaced, for the node that runs it."""

    job_type: str
    content: TemplateContent

    @property
    def text(self) -> str:
        """The job's definition as JSON, as the store contains it."""
        return msgspec.json.encode(self).decode()


def work_parse(text: str) -> JobWork:
    """Parse a job's definition from the JSON of `JobWork.text`."""
    return msgspec.json.decode(text, type=JobWork)


def work_check(rules: JobRules, job_type: str, *, content: TemplateContent) -> JobWork:
    """Return a job's definition after checking its files, environment variables and Spark properties.

    Raises BadRequest for content that the settings do not allow, or two scripts of the same name.
    """
    files = (content.executable, *content.scripts, *content.jars, *content.files, *content.archives)
    for each in files:
        require_allowed(rules, path_of(each), label=each)
    _require_names(content.environments, rules.environment, label="environment variable", setting="jobs.environment")
    _require_names(content.configs, rules.spark_configs, label="Spark property", setting="jobs.spark_configs")
    if job_type == SHELL:
        _require_distinct_names(content.scripts)
    return JobWork(job_type, content)


def path_of(text: str) -> str:
    """Return the local path of a job's file, given as a path or a `file:` URI. Raises BadRequest for a relative path,
    another scheme, or a path with `,` or `#`.
    """
    parts = urlsplit(text)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        text = unquote(parts.path)
    elif parts.scheme:
        raise BadRequest(f"{preview_value(text)} is not a file on the server's machine: name one, as /srv/jobs/load.sh")
    if not text.startswith("/") or "," in text or "#" in text:
        raise BadRequest(
            f"{preview_value(text)} is not an absolute path without ',' and '#': write it as /srv/jobs/load.sh"
        )
    return normpath(text).replace("//", "/")


def require_allowed(rules: JobRules, path: str, *, label: str) -> None:
    """Raise BadRequest for a file that the settings do not allow; `label` is the file's name in the message."""
    if not any(path == root.rstrip("/") or path.startswith(f"{root.rstrip('/')}/") for root in rules.allowed):
        raise BadRequest(
            f"{preview_value(label)} is outside of the locations from which jobs of this server may get files: its"
            " operator lists them in jobs.allowed"
        )


def _require_names(arguments: Mapping[str, str], patterns: Iterable[str], *, label: str, setting: str) -> None:
    for name in arguments:
        if not any(fnmatchcase(name, pattern) for pattern in patterns):
            raise BadRequest(
                f"{preview_value(name)} is not a {label} that jobs of this server may set: its operator lists those in"
                f" {setting}"
            )
        if not name or "=" in name:
            raise BadRequest(f"{preview_value(name)} is not a valid {label}: a name must not be empty or contain '='")


def _require_distinct_names(scripts: tuple[str, ...]) -> None:
    """Raise BadRequest for two scripts of the same name, since a job's scripts are in one directory."""
    names = [each.rpartition("/")[2] for each in scripts]
    if len(set(names)) < len(names):
        raise BadRequest(
            "Two scripts have the same name: they are copied to one directory, so give them different names"
        )


JOB_RULES: ComponentKey[JobRules] = ComponentKey("job_rules", lambda _: JobRules())
