"""Expressions over private rows: what they become in the engine, and what is publicly known of their values."""
