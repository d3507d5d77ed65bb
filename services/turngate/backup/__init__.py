"""Backups of a namespace: every stream as the server's own snapshot, and a manifest that says what is there."""
