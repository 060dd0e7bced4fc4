# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests that call a node in process, as those of the kernel's protocols."""

from tests.http.conftest import empty_database, fresh, node, open_node, patience  # noqa: F401 - fixtures
