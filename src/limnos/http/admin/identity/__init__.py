# SPDX-License-Identifier: Apache-2.0
"""Routes about users, groups, tokens, sign-in, service accounts and explanations of decisions.

Imports as its modules do.
"""
