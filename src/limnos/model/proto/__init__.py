# SPDX-License-Identifier: Apache-2.0
"""Code generated from `proto/`: the Protobuf messages of stored records and exports.

Written by `scripts/generate_proto.py`; imports only Protobuf. Must not be edited.
"""
