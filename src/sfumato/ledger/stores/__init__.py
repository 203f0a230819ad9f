"""Where a ledger writes: memory, one SQLite file, PostgreSQL."""
