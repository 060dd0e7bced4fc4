"""AsterixDB's JDBC driver, from a checkout that the reader supplies, against a running query service."""
