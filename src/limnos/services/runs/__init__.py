# SPDX-License-Identifier: Apache-2.0
"""Pipelines, their runs, and jobs. May import `lance` and the packages that `lance` may import."""
