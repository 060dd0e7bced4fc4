# SPDX-License-Identifier: Apache-2.0
"""One module for each schema revision, in order."""
