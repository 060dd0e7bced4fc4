# SPDX-License-Identifier: Apache-2.0
"""Objects that SQL++ creates and drops: dataverses, types, datasets, functions, synonyms and views.

May import `requests`, `locks` and the packages that those may import.
"""
