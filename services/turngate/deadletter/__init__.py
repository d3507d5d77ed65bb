"""The dead-letter service: it finds what nobody handles any more, and does with dead letters what people decide."""
