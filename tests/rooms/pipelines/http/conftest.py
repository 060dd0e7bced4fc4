# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests of routes, as those of the kernel's protocols."""

from tests.http.conftest import empty_database, fresh, node, open_node, patience  # noqa: F401 - fixtures
