"""Lance tables: their rows, versions, tags and files. May import `iceberg` and what that may import."""
