"""Pipelines, their runs, and jobs. May import `lance` and what that may import."""
