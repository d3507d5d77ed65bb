"""The rules of the four protocols: report, question, conclusion and supervisor (ESM).

Nothing in this package reads a clock, a file, a socket or the environment: time, ids and what the machine knows come in
as arguments, and what should happen is returned as data.
"""
