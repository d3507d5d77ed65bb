"""A newcomer's walk through Turngate: read the files in the order of their numbers."""
