# SPDX-License-Identifier: Apache-2.0
"""The process of the SQL++ engine: starts, files, jobs and replacement."""
