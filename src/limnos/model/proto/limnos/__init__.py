# SPDX-License-Identifier: Apache-2.0
"""The package of the Protobuf definitions, needed so that a message's full name is `limnos.v1.<Message>`."""
