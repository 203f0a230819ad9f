"""Checks that the promises hold: neighbours, lower bounds, conformance, attacks."""
