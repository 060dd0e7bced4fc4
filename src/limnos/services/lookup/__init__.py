"""Finding objects by name or id, and deciding which of them a caller sees.

May import `federation`, `storage` and `request`.
"""
