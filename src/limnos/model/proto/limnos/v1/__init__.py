"""Version 1 of the messages; a second major version would stand beside it."""
