-- Receipts that something can still be done with: whoever opens the ledger holds them to what the last entry left.
CREATE INDEX receipts_live ON sfumato.receipts (id) WHERE state IN ('spent', 'held', 'opened');
