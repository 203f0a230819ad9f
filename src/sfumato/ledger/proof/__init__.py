"""Whether a ledger is what was written: the chain, its anchor, replay and verify."""
