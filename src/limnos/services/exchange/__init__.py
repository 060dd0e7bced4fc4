"""Export and import of metalakes. May import `activity` and what that may import."""
