from tests.ledger.stores import all_stores, durable, ledgers
from tests.ledger.striking import quick

__all__ = ["all_stores", "durable", "ledgers", "quick"]
