"""Work that nobody asks for: tasks, trash, janitors, keys of secrets. May import `exchange` and what that may import."""
