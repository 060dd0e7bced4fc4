# SPDX-License-Identifier: Apache-2.0
"""AsterixDB's own SQL++ suite, sent to a query service."""
