"""Lance's clients and Lance's own server beside ours."""
