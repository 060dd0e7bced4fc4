"""SQL++: its statements, datasets, definitions, locks and results. May import `transactions` and what that may import."""
