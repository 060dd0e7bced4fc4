# SPDX-License-Identifier: Apache-2.0
"""Four kinds of work beside one another on one standalone cluster of Spark, whose workers are killed."""
