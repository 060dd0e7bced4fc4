"""The composition root: settings → store → view → services → http, and the process around them.

May import every room. Nothing imports this but the command line.
"""
