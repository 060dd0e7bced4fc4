"""Records of a metalake in a key-value storage, LMDB or one table of SQL, which no server runs on.

May import `model`, `formats` and `limnos.store.exchange`.
"""
