"""One query of a growing table, asked of each day, week or month once, and read in any window for nothing."""
