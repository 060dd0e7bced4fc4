# SPDX-License-Identifier: Apache-2.0
"""Executor of maintenance operations on Spark: leases operations from a server, and executes them.

Must not know the server's packages: operations come over HTTP.
"""
