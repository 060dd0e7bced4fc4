# SPDX-License-Identifier: Apache-2.0
"""Objects that SQL++ creates and drops: dataverses, types, datasets, functions, synonyms and views."""
