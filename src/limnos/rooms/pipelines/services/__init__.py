# SPDX-License-Identifier: Apache-2.0
"""Pipelines, their schedules and runs, and lineage."""
