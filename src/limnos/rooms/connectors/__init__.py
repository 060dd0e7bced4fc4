# SPDX-License-Identifier: Apache-2.0
"""Catalogs of external systems: databases, metastores, brokers and other Iceberg catalogs."""
