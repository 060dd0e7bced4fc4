# SPDX-License-Identifier: Apache-2.0
"""Routes of pipelines, their schedules and runs, and of lineage."""
