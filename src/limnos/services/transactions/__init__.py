"""Transactions: several operations, all of them or none. May import `runs` and the packages that `runs` may import."""
