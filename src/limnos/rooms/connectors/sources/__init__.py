# SPDX-License-Identifier: Apache-2.0
"""The connectors of databases, metastores, brokers and other Iceberg catalogs. Decision record 0078."""
