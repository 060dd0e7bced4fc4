"""Limnos: one governed tree of names for lakehouse data."""

__version__ = "0.1.0"
