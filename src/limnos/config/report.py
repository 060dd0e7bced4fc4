# SPDX-License-Identifier: Apache-2.0
"""Reports of settings: the effective values with their origins, and the reference page.

Secrets are masked here, including passwords inside URLs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from pydantic_core import PydanticUndefined

from limnos.config.loading import FLAGS, PREFIX, LoadedSettings
from limnos.config.settings import Settings, is_secret, keys, sections
from limnos.model.secrets import Secret

MASK = "*****"
_SECRET_WORDS = ("password", "secret", "token")


@dataclass(frozen=True, slots=True)
class SettingRow:
    """An effective setting: `section.key`, its value with secrets masked, and its origin."""

    key: str
    value: object
    origin: str


def rows(loaded: LoadedSettings) -> tuple[SettingRow, ...]:
    """Return every setting in effect, in the order of the reference page."""
    settings = loaded.settings
    dump = dump_settings(settings)
    results = []
    for key in keys():
        section, _, name = key.partition(".")
        value = dump[section][name]
        value = show_value(getattr(settings.section(section), name)) if is_secret(key) else mask_value(value)
        results.append(SettingRow(key=key, value=value, origin=loaded.origins[key]))
    return tuple(results)


def dump_settings(settings: Settings) -> dict[str, dict[str, object]]:
    """Return the values of all settings as JSON has them, by section and name."""
    return {name: settings.section(name).model_dump(mode="json") for name in sections()}


def show_value(value: object) -> object:
    """Return a secret setting in a form without secrets: a URL with masked password, the names of a mapping's entries,
    or a mask.
    """
    if isinstance(value, Secret):
        return mask_value(value.reveal()) if "://" in value.reveal() else MASK
    if not value:
        return value
    return ", ".join(value) if isinstance(value, dict) else MASK


def mask_value(value: object) -> object:
    """Mask the secrets in a value: the password of a URL, and secret query parameters."""
    if not isinstance(value, str) or "://" not in value:
        return value
    url = urlsplit(value)
    user, at, host = url.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    netloc = f"{name}:{MASK}@{host}" if colon else f"{user}{at}{host}"
    pairs = [
        (key, MASK if _is_secret_name(key) else text) for key, text in parse_qsl(url.query, keep_blank_values=True)
    ]
    return urlunsplit(url._replace(netloc=netloc, query=urlencode(pairs, quote_via=quote, safe="*/:,")))


def _is_secret_name(key: str) -> bool:
    return any(word in key.lower() for word in _SECRET_WORDS)


def variable_name(key: str) -> str:
    """Return the environment variable of a setting: `LIMNOS__SECTION__KEY`."""
    return PREFIX + key.replace(".", "__").upper()


def reference() -> str:
    """Return the tables of `docs/reference/settings.md` as Markdown: one per section."""
    return "\n".join(_reference_lines())


def _reference_lines() -> Iterator[str]:
    for section, model in sections().items():
        yield from (f"## {section}", "", (model.__doc__ or "").strip(), "")
        yield "| setting | environment | flag | default | meaning |"
        yield "|---|---|---|---|---|"
        for name, field in model.model_fields.items():
            key = f"{section}.{name}"
            flag = f"`{FLAGS[key]}`" if key in FLAGS else ""
            meaning = " ".join((field.description or "").split())
            yield f"| `{key}` | `{variable_name(key)}` | {flag} | {_default(field.default)} | {meaning} |"
        yield ""


def _default(value: object) -> str:
    if value is None or value == () or value is PydanticUndefined:
        return "unset"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
