"""Queries as people write them: TPC-H, a star schema, and the shapes that documentation shows."""
