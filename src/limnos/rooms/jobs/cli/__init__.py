# SPDX-License-Identifier: Apache-2.0
"""Commands about jobs and their templates."""
