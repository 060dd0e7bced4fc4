# SPDX-License-Identifier: Apache-2.0
"""Verification of the store against storage: Spark's executors compare what the server says of tables and views with
their files.

Each task loads an object from the server, reads its files with the caller's credentials, and yields findings. Must not
know pipelines. Decision record 0296.
"""
