"""The long proofs, whole: every round on two nodes, every fault at every boundary, long freshness stories."""
