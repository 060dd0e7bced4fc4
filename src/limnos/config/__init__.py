"""What one server process is told, and where each value came from.

May import `model`, `names` and pydantic. Knows no server, no store, no command line: it turns flags, an environment
mapping and one TOML file into frozen values, or into one error that says what to change.
"""

from __future__ import annotations

from limnos.config.loading import LoadedSettings, load
from limnos.config.settings import ConfigError, Settings

__all__ = ["ConfigError", "LoadedSettings", "Settings", "load"]
