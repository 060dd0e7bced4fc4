"""What hangs on objects: tags, policies, statistics, read restrictions. May import `identity` and what that may import."""
