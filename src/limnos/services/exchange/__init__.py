# SPDX-License-Identifier: Apache-2.0
"""Export and import of metalakes. May import `search` and the packages that `search` may import."""
