"""Several operations at once: all of them or none. May import `runs` and what that may import."""
