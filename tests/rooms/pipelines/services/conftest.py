# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests of services, as those of the kernel's services."""

from tests.services.conftest import desk, file_lab  # noqa: F401 - fixtures
