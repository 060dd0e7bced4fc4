# SPDX-License-Identifier: Apache-2.0
"""Conversion between Gravitino's JSON and other formats: tables, columns, partitioning, sort orders, views, functions,
policies and job templates.

Pure: values in, values out. Must not know HTTP, services or the store.
"""
