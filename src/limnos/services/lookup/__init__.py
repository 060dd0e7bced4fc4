"""Finding objects by name and id, and deciding what of them a caller sees. May import `federation`, `storage` and `request`."""
