# SPDX-License-Identifier: Apache-2.0
"""Rewriting of tables' files by executors: operations that wait, their leases, and the tokens that executors get.

Must not know Spark: executors lease operations over HTTP.
"""
