"""Gravitino's Java client on its main paths, as an admin, as a worker and as an outsider."""
