"""What crosses NATS: subjects, streams, messages, events, headers, errors and permissions. Pure definitions."""
