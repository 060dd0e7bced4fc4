"""AsterixDB's JDBC driver, from a checkout that the user supplies, against a running query service."""
