"""Alembic revisions of the store, each compatible with the previous release."""
