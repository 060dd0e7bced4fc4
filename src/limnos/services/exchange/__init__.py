"""Export and import of metalakes. May import `search` and the packages that `search` may import."""
