"""Objects that SQL++ creates and drops: dataverses, types, datasets, functions, synonyms and views.

May import `requests`, `locks` and what they may import.
"""
