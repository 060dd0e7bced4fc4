# SPDX-License-Identifier: Apache-2.0
"""Settings of one server process, and the origin of each value.

Must not know servers, stores or the command line. It turns flags, environment variables and one TOML file into frozen
values, or into one error with advice.
"""

from __future__ import annotations

from limnos.config.loading import LoadedSettings, load
from limnos.config.settings import ConfigError, Settings

__all__ = ["ConfigError", "LoadedSettings", "Settings", "load"]
