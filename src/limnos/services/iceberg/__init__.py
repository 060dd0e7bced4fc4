# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables and views: create, commit, plan scans, restricted reads."""
