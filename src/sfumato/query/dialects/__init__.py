"""Queries in the SQL of other databases, made into the same question in DuckDB's SQL."""
