"""SQL++: statements, datasets, definitions, locks and results.

May import `transactions` and the packages that it may import.
"""
