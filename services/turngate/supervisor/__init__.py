"""The supervisor service: it drives objectives to their proven end, whoever dies on the way."""
