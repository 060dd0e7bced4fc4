# SPDX-License-Identifier: Apache-2.0
"""Records of a metalake in a key-value storage, LMDB or one SQL table. Servers do not use it.

May import `model`, `formats` and `limnos.store.exchange`.
"""
