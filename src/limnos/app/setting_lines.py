# SPDX-License-Identifier: Apache-2.0
"""The settings of this node as lines for display, with masks in place of secrets."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from limnos.config.report import dump_settings
from limnos.config.secrets import secrets_of
from limnos.config.settings import Settings, is_secret, keys, sections
from limnos.model.secrets import MASK
from limnos.services.upkeep.effective_settings import SettingLine


def setting_lines(settings: Settings, origins: Mapping[str, str]) -> tuple[SettingLine, ...]:
    """Return all settings in the order of the documentation. A value that contains a secret is masked completely.

    `origins` maps a setting to its origin, as `LoadedSettings` does; settings without one have their defaults.
    """
    own = dump_settings(settings)
    default = {name: model().model_dump(mode="json") for name, model in sections().items()}
    secrets = [msgspec.json.encode(text)[1:-1] for text in secrets_of(settings)]
    return tuple(
        _line(key, own, default=default, secrets=secrets)._replace(origin=origins.get(key, "default")) for key in keys()
    )


def _line(
    key: str,
    own: Mapping[str, Mapping[str, object]],
    *,
    default: Mapping[str, Mapping[str, object]],
    secrets: list[bytes],
) -> SettingLine:
    section, _, name = key.partition(".")
    value = own[section][name]
    text = msgspec.json.encode(value)
    hides = is_secret(key)
    if value and (hides or any(secret in text for secret in secrets)):
        text = msgspec.json.encode(MASK)
    return SettingLine(name=key, value=text.decode(), is_default=value == default[section][name], is_secret=hides)
