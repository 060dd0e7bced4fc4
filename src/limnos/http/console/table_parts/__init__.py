"""Tabs of the pages of tables: each module builds the view of one tab.

May import `services`, `model`, `names` and the console's shared modules, but no page.
"""
