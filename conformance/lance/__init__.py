"""Lance's clients, and Lance's own server compared with ours."""
