"""Rows on their way to the aggregate: the unit is tracked through every relational step."""
