"""Exports of metalakes as messages and bytes, without I/O (`proto/limnos/v1/export.proto`).

May import Protobuf, `model` and the standard library. Must not know HTTP, SQL, files or permissions.
"""
