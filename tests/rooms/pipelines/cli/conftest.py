# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests of commands, as those of the kernel's command line."""

from tests.cli.conftest import _clean_environment, fake, limnos, run  # noqa: F401 - fixtures
