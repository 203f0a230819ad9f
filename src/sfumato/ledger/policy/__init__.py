"""Who may do what, how much, and who is told."""
