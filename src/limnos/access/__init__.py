# SPDX-License-Identifier: Apache-2.0
"""Access: authentication, policy, decisions, explanations and list filters.

Must not know SQL, nor wire formats other than the Authorization header. Policies are pure functions of their arguments.
"""
