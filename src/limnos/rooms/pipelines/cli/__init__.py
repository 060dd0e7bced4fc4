# SPDX-License-Identifier: Apache-2.0
"""Commands about pipelines: check, plan, run, schedule, and lineage."""
