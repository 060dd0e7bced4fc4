# SPDX-License-Identifier: Apache-2.0
"""The console's pages of pipelines, their runs and schedules, and lineage."""
