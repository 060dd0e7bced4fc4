# SPDX-License-Identifier: Apache-2.0
"""Statistics of columns: Spark's executors add up what the manifests of tables say of each column.

Each task loads a table from the server and reads the manifests of its current snapshot with the caller's credentials.
No data file is opened. Must not know pipelines.
"""
