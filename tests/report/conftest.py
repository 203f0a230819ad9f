from tests.ledger.stores import all_stores, ledgers

__all__ = ["all_stores", "ledgers"]
