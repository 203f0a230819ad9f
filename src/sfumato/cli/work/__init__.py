"""What the commands do. Imported when a command runs, so heavy imports may stand at the top of these files."""
