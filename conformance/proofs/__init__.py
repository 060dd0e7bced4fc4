"""The long proofs: every round on two nodes, every fault at every boundary, long freshness stories."""
