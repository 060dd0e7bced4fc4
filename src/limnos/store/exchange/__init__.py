"""Statements that export and import a metalake.

May import `model`, the packages of statements before it and the modules of `limnos.store` below `tx`.
"""
