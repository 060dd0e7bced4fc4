# SPDX-License-Identifier: Apache-2.0
"""Loads the settings from flags, environment variables, one TOML file, and defaults, in this order of precedence.

Must not know the meaning of a setting, only names and origins, for errors.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from limnos.config.section import SettingsSection
from limnos.config.settings import ConfigError, Settings, is_secret, keys, sections
from limnos.model.secrets import hide_secrets, passwords_of_url

PREFIX = "LIMNOS__"

FLAGS: Mapping[str, str] = {
    "server.data": "--data",
    "server.listen": "--listen",
    "server.insecure_listen": "--insecure-listen",
    "server.hosts": "--host-name",
    "tls.certificate": "--certificate",
    "tls.key": "--key",
    "storage.warehouse": "--warehouse",
    "storage.allowed_roots": "--allow-root",
    "storage.allowed_endpoints": "--allow-endpoint",
    "sources.allowed_addresses": "--allow-source",
    "server.workers": "--workers",
    "sqlpp.enabled": "--sqlpp",
    "server.bare": "--bare",
    "server.admin": "--admin",
    "database.url": "--database",
    "access.enabled": "--access",
    "access.authentication": "--authentication",
}
"""Settings that have their own flag on `server start`."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings in effect.

    `origins` has the origin of each `section.key`: `flag --data`, `environment LIMNOS__SERVER__DATA`, `file
    limnos.toml` or `default`.
    """

    settings: Settings
    origins: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _SettingValue:
    key: str
    value: object
    origin: str


def load(*, flags: Mapping[str, object], file: Path | None, environ: Mapping[str, str]) -> LoadedSettings:
    """Combine the flags, the environment, the file and the defaults, and check the result.

    `flags` has keys `section.key`; None means that the flag was not given. `file` is a TOML file, or None. An empty
    environment variable counts as not set. Raises ConfigError, which names every wrong setting with its origin.
    """
    layers = [*_file_values(file), *_environment_values(environ), *_flag_values(flags)]
    setting_keys = set(keys())
    problems = [_unknown_text(item) for item in layers if item.key not in setting_keys]
    winners = {item.key: item for item in layers if item.key in setting_keys}
    origins = {key: winners[key].origin if key in winners else "default" for key in keys()}
    try:
        settings = _build(winners, origins)
    except ConfigError as error:
        raise ConfigError("\n".join([*problems, error.message])) from None
    if problems:
        raise ConfigError("\n".join(problems))
    return LoadedSettings(settings=settings, origins=origins)


def _flag_values(flags: Mapping[str, object]) -> Iterator[_SettingValue]:
    for key, value in flags.items():
        if value is not None:
            yield _SettingValue(key, value, f"flag {FLAGS.get(key, key)}")


def _environment_values(environ: Mapping[str, str]) -> Iterator[_SettingValue]:
    for name in sorted(environ):
        if name.upper().startswith(PREFIX) and environ[name]:
            yield _SettingValue(name[len(PREFIX) :].lower().replace("__", "."), environ[name], f"environment {name}")


def _file_values(file: Path | None) -> Iterator[_SettingValue]:
    if file is None:
        return
    origin = f"file {file}"
    for section, body in _read_toml(file).items():
        if not isinstance(body, dict):
            raise ConfigError(f"{origin}: '{section}' is outside of a section; {_advice(section)}")
        named_tables = {key: value for key, value in body.items() if section == "storage" and isinstance(value, dict)}
        if named_tables:  # [storage.NAME] is a named storage, not a section
            yield _SettingValue("storage.named", named_tables, origin)
        for key, value in body.items():
            if key not in named_tables:
                yield _SettingValue(f"{section}.{key}", value, origin)


def _read_toml(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no settings file '{file}'; check --config or leave it out") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the settings file '{file}' cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the settings file '{file}' is not valid TOML: {error}") from error


def _unknown_text(value: _SettingValue) -> str:
    return f"unknown setting '{value.key}' ({value.origin}); {_advice(value.key)}"


def _advice(key: str) -> str:
    """Suggest a correction for an unknown setting: the nearest full name, or the nearest key of any section."""
    setting_keys = keys()
    own_name = key.rpartition(".")[2]
    similar_keys = [
        name for name in setting_keys if name.rpartition(".")[2] == own_name
    ]  # the same key in another section
    similar_keys = similar_keys or difflib.get_close_matches(key, setting_keys, n=1, cutoff=0.6)
    if not similar_keys:
        tails = {name.partition(".")[2]: name for name in reversed(setting_keys)}
        similar_keys = [tails[tail] for tail in difflib.get_close_matches(own_name, tails, n=1, cutoff=0.6)]
    if similar_keys:
        return f"did you mean '{similar_keys[0]}'?"
    return "'limnos server config' lists every setting"


def _build(winners: Mapping[str, _SettingValue], origins: Mapping[str, str]) -> Settings:
    tree: dict[str, dict[str, object]] = {}
    for item in winners.values():
        section, _, key = item.key.partition(".")
        tree.setdefault(section, {})[key] = item.value
    section_types = sections()
    added_sections = {
        name: _check_section(section_types[name], tree.pop(name, {}), name=name, origins=origins)
        for name in section_types
        if name not in Settings.model_fields
    }
    try:
        return Settings.model_validate(tree | ({"added": added_sections} if added_sections else {}))
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(error, origins))) from None  # pydantic's own message repeats values


def _check_section(
    model: type[SettingsSection], values: Mapping[str, object], *, name: str, origins: Mapping[str, str]
) -> SettingsSection:
    """Check the values of a section of another package. Raises ConfigError."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(error, origins, within=(name,)))) from None


def _explain(error: ValidationError, origins: Mapping[str, str], *, within: tuple[str, ...] = ()) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        key = ".".join(str(part) for part in (*within, *problem["loc"])[:2])
        text = hide_secrets(problem["msg"].removeprefix("Value error, "), passwords_of_url(str(problem["input"])))
        if key in origins:
            yield (
                f"setting '{key}' ({origins[key]}):"
                f" {text}{_value_text(problem['input'], kind=problem['type'], key=key)}"
            )
        else:
            yield text


def _value_text(value: object, *, kind: str, key: str) -> str:
    """Return `, not VALUE` for the end of an error message; "" if the message already has the value or it may be a
    secret.
    """
    if kind == "value_error" or "://" in str(value) or is_secret(key):
        return ""
    return f", not {value!r}"
