# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests of pages, as those of the console."""

from tests.http.conftest import empty_database, fresh, node, open_node, patience  # noqa: F401 - fixtures
from tests.rooms.console.http.conftest import admin, lake  # noqa: F401 - fixtures
