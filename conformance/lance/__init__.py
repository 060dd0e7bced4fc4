# SPDX-License-Identifier: Apache-2.0
"""Lance's clients, and Lance's own server compared with ours."""
