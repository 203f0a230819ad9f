"""Workloads: many tables, ranges and cumulative sums of the same cells, measured together."""
