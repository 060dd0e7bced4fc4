# SPDX-License-Identifier: Apache-2.0
"""Pages of the user's own API tokens, and of service accounts' secrets. The value of a new one is shown once.

May import `services`, `model`, `names` and the console's shared modules, but no page of another package.
"""
