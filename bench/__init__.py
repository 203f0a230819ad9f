"""Benchmarks that put sfumato side by side with its peers."""
