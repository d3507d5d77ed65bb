"""The hook command: what agents' command lines tell after each tool and when they stop becomes evidence and the gate.

`decode` reads the event, `records` writes evidence down, `gate` applies the turn gate. An agent waits for each of its
hooks, so the first two need only Python's own library; only a stop connects to anything.
"""
