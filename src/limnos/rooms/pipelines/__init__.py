# SPDX-License-Identifier: Apache-2.0
"""Pipelines, their runs, and lineage."""
