# SPDX-License-Identifier: Apache-2.0
"""Harvest of tables in directories: tasks of executors that list directories, read metadata, and register tables.

Must not know Spark's sessions or pipelines. What lies in the directories was written by others: each thing that cannot
be read is a row with its problem, and the tasks go on.
"""
