# SPDX-License-Identifier: Apache-2.0
"""Commands that operate a server: start, check, nodes, Spark jars, storage, maintenance, tasks, audit and webhooks."""
