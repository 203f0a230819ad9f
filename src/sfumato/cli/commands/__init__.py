"""One file per family of commands: signatures and help only. The work is in `cli.work`, imported when asked for."""
