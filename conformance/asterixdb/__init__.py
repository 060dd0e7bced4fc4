"""AsterixDB's own SQL++ suite, sent to a query service."""
