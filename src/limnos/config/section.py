# SPDX-License-Identifier: Apache-2.0
"""The base class of all sections of the settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SettingsSection(BaseModel):
    """A group of settings: frozen, unknown keys refused. The docstring of a field is its description."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True, use_attribute_docstrings=True
    )
