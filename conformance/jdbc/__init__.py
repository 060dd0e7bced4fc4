# SPDX-License-Identifier: Apache-2.0
"""AsterixDB's JDBC driver, from a checkout that the user supplies, against a running query service."""
