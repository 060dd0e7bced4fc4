# SPDX-License-Identifier: Apache-2.0
"""Gravitino's Java client on its main calls, as an admin, as a user with privileges and as a user without."""
