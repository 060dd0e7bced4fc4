# SPDX-License-Identifier: Apache-2.0
"""Alembic revisions of the store, each compatible with the previous release."""
