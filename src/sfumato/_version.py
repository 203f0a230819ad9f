"""Two numbers, written into every entry of a ledger."""

VERSION = "0.1.0"

PRICES = 2
"""The edition of the accountant, one more whenever a price moves: an entry of this edition must be charged what this
one would charge, to nine digits; one of an earlier edition may have paid more."""
