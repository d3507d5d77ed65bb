"""The command line. `main` starts; one small module per command; nothing heavy is imported before it is needed."""
