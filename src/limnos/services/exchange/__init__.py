"""Export and import of metalakes. May import `activity` and the packages that `activity` may import."""
