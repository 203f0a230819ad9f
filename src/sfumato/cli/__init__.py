"""The command line. What a command does is imported when it runs: `sfumato --help` loads neither numpy nor engines."""
