# SPDX-License-Identifier: Apache-2.0
"""Federation: connector catalogs, whose objects are in external systems, their connectors, and placeholder nodes."""
