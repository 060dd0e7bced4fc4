"""What happened: the change feed, webhooks, audit, lineage. May import `sqlpp` and what that may import."""
