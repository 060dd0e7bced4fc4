# SPDX-License-Identifier: Apache-2.0
"""History tables, which store every state of a key with its validity (slowly changing dimension of type 2)."""
