"""What `sfumato ledger` does. One file per question: where it is, how it stands, what happened, is it true."""
