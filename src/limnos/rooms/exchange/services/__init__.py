# SPDX-License-Identifier: Apache-2.0
"""Export and import of metalakes."""
