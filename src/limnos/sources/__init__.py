# SPDX-License-Identifier: Apache-2.0
"""Connectors to external systems, credentials for object stores, and worker processes for Lance tables."""
