# SPDX-License-Identifier: Apache-2.0
"""Every document that the server stores is parsed by the readers that clients have."""
