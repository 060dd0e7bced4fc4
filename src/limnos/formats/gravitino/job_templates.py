# SPDX-License-Identifier: Apache-2.0
r"""Job templates: the program or Spark application that a job runs, with placeholders for the job's values.

Pure. Must not know rights or a server's limits. A placeholder is `{{name}}`, or `{{name:-default}}`; `\{{` stands for
two braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from limnos.formats.iceberg.json_types import preview_value
from limnos.model.errors import BadRequest

SHELL: Final = "shell"
SPARK: Final = "spark"
TYPES: Final = (SHELL, SPARK)
CONTENT_MAX: Final = 32 << 10
"""The maximum length of a template's content as JSON, in characters: lists of templates contain all of it."""
_PLACE = re.compile(r"\\\{\{|\{\{([\w.-]+)(?::-([^{}]*))?\}\}")
_BROKEN = re.compile(r"(?<!\\)\{\{([\w.-]+):-(?![^{}]*\}\})")
_CLASS = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*")


class TemplateContent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True, kw_only=True
):
    """The content of a template. `scripts` is for shell jobs, `class_name` and the fields after it for Spark jobs."""

    executable: str
    arguments: tuple[str, ...] = ()
    environments: Mapping[str, str] = msgspec.field(default_factory=dict)
    custom_fields: Mapping[str, str] = msgspec.field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    class_name: str = ""
    jars: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    configs: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def text(self) -> str:
        """The content as JSON for the template's record; `content_read` decodes it."""
        return msgspec.json.encode(self).decode()


FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    SHELL: ("executable", "arguments", "environments", "customFields", "scripts"),
    SPARK: (
        "executable",
        "arguments",
        "environments",
        "customFields",
        "className",
        "jars",
        "files",
        "archives",
        "configs",
    ),
}
"""The fields of each type of template, under Gravitino's names."""


def type_of(word: str) -> str:
    """Return a job type in lower case. Raises BadRequest for a type other than `shell` or `spark`."""
    if word.lower() not in TYPES:
        raise BadRequest(f"Field jobType must be shell or spark, not {preview_value(word)}")
    return word.lower()


def content_of(job_type: str, fields: Mapping[str, object]) -> TemplateContent:
    """Check and convert the content of a template; null fields are omitted.

    Raises BadRequest for a missing or malformed field, one of another job type, and content that is too long.
    """
    _refuse_others(job_type, fields)
    try:
        content = msgspec.convert({name: each for name, each in fields.items() if each is not None}, TemplateContent)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The job template is not valid for type {job_type}: {error}") from None
    return _check_content(content)


def content_read(text: str) -> TemplateContent:
    """Decode the content from a record."""
    return msgspec.json.decode(text, type=TemplateContent)


def alter_content(job_type: str, text: str, *, changes: Mapping[str, object]) -> TemplateContent:
    """Apply an update to stored content. Its fields are `newExecutable` and so on; null fields change nothing.

    Raises BadRequest for a malformed field, or one of another job type.
    """
    update = dict(changes)
    if str(update.pop("@type", "")).lower() != job_type:
        raise BadRequest(
            f"The job template is of type {job_type}: newTemplate must have that @type, which cannot change"
        )
    fields = {_stored_field_name(name): each for name, each in update.items() if each is not None}
    return content_of(job_type, {**msgspec.to_builtins(content_read(text)), **fields})


def _stored_field_name(name: str) -> str:
    if not name.startswith("new") or len(name) < 4:
        raise BadRequest(
            f"Unknown field {preview_value(name)} of newTemplate: its fields are newExecutable, newArguments and so on"
        )
    return name[3].lower() + name[4:]


def _refuse_others(job_type: str, fields: Mapping[str, object]) -> None:
    others = [name for name, each in fields.items() if name not in FIELDS[job_type] and each is not None]
    if others:
        raise BadRequest(
            f"Field {preview_value(others[0])} does not belong to a job template of type {job_type}:"
            f" {', '.join(FIELDS[job_type])}"
        )


def _check_content(content: TemplateContent) -> TemplateContent:
    if not content.executable.strip():
        raise BadRequest("Field executable is empty: name the file to run")
    if len(content.text) > CONTENT_MAX:
        raise BadRequest(
            f"A job template has at most {CONTENT_MAX} characters as JSON: put the remaining content into a file and"
            " name it"
        )
    placeholders(content)
    return content


def placeholders(content: TemplateContent) -> dict[str, str | None]:
    """Return the names of a template's placeholders with their defaults.

    Raises BadRequest for a malformed placeholder, or one with two different defaults.
    """
    results: dict[str, str | None] = {}

    def note(text: str) -> str:
        broken_match = _BROKEN.search(text)
        if broken_match is not None:
            raise BadRequest(
                f"Placeholder {{{{{broken_match[1]}:-…}}}} is not closed, or contains braces: {preview_value(text)}"
            )
        for match in _PLACE.finditer(text):
            if match[1] is not None:
                _add_placeholder(results, match[1], otherwise=match[2])
        return text

    _map_strings(content, note)
    return results


def _add_placeholder(results: dict[str, str | None], name: str, *, otherwise: str | None) -> None:
    first_default = results.get(name)
    if first_default is not None and otherwise is not None and first_default != otherwise:
        raise BadRequest(
            f"Placeholder {name} has two default values: {preview_value(first_default)} and {preview_value(otherwise)}"
        )
    results[name] = otherwise if first_default is None else first_default


def fill_placeholders(content: TemplateContent, values: Mapping[str, str]) -> TemplateContent:
    """Replace a template's placeholders by values. Placeholders inside values are not replaced.

    Raises BadRequest for a missing value, for two keys of a map that become equal, and for a result that cannot be a
    process argument (a zero byte) or a class name.
    """
    placeholder_names = placeholders(content)
    missing = sorted(name for name, otherwise in placeholder_names.items() if otherwise is None and name not in values)
    if missing:
        raise BadRequest(
            f"No value for {', '.join(missing)}: give it in jobConf, or give it a default value in the template:"
            f" {{{{{missing[0]}:-VALUE}}}}"
        )

    def fill(match: re.Match[str]) -> str:
        return "{{" if match[1] is None else values.get(match[1], placeholder_names[match[1]] or "")

    filled_content = _map_strings(content, lambda text: _PLACE.sub(fill, text))
    if "\\u0000" in filled_content.text:
        raise BadRequest("A value contains a zero byte, which is not possible in process arguments")
    if filled_content.class_name and not _CLASS.fullmatch(filled_content.class_name):
        raise BadRequest(f"Field className is {preview_value(filled_content.class_name)}, which is not a class name")
    return filled_content


def _map_strings(content: TemplateContent, change: Callable[[str], str]) -> TemplateContent:
    """Apply a function to every string of a template. Raises BadRequest if two keys of a map become equal."""
    return TemplateContent(
        executable=change(content.executable),
        arguments=tuple(map(change, content.arguments)),
        environments=_keys(content.environments, change),
        custom_fields=_keys(content.custom_fields, change),
        scripts=tuple(map(change, content.scripts)),
        class_name=change(content.class_name),
        jars=tuple(map(change, content.jars)),
        files=tuple(map(change, content.files)),
        archives=tuple(map(change, content.archives)),
        configs=_keys(content.configs, change),
    )


def _keys(texts: Mapping[str, str], change: Callable[[str], str]) -> dict[str, str]:
    changed_texts = {change(key): change(value) for key, value in texts.items()}
    if len(changed_texts) < len(texts):
        raise BadRequest("Two names of environments, customFields or configs become equal with the values of jobConf")
    return changed_texts
