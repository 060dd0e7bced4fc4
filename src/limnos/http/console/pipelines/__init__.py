# SPDX-License-Identifier: Apache-2.0
"""The pages of pipelines and their runs."""
