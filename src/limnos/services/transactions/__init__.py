"""Transactions: several operations, executed atomically. May import `runs` and the packages that `runs` may import."""
