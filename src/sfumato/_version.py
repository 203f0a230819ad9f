"""One number, written into every entry of a ledger."""

VERSION = "0.1.0"
