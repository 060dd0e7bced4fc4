# SPDX-License-Identifier: Apache-2.0
"""Moving the tables of Iceberg's reference server into a server with access control on."""
