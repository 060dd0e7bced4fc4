# SPDX-License-Identifier: Apache-2.0
"""Commands that operate a server: start, check, nodes, Spark jars, storage, maintenance, tasks, audit and webhooks.

May import the shared modules of `limnos.cli`, the packages before it, and the modules that those may import.
"""
