# SPDX-License-Identifier: Apache-2.0
"""A pipeline that publishes texts and their embeddings by one commit, beside readers and kills."""
