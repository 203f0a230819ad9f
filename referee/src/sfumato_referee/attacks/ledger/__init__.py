"""Attacks on the ledger: rows L1 to L19 of the list of attacks, B2 and B3.

Each runs on ledgers of its own in a temporary folder, so it can be run on any installation at any time. Processes that
are killed, or whose clock, disk or rights are taken away, are `python -m sfumato_referee.attacks.ledger WORKER ...`.
"""
