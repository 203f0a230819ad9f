"""A pipeline is recorded on one table and replayed on its neighbours: what should be public must not change."""
