# SPDX-License-Identifier: Apache-2.0
"""Pages of the user's own API tokens, and of service accounts' secrets. The value of a new one is shown once."""
