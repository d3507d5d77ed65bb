"""What crosses NATS: subjects, streams, messages, events, headers and errors. Pure definitions."""
