"""One release flow and its documents, for the command line and for a service alike: open, check, quote, agree, pay,
release, write, tell the budget. Nothing here prints, asks, ends a process or reads a command line."""
