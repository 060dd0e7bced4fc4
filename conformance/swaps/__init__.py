# SPDX-License-Identifier: Apache-2.0
"""Whether a test notices that two neighbouring arguments of one declared type are exchanged."""
