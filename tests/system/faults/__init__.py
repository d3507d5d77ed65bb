"""The fault suite: everything in the list of faults, against real processes, with the accounts settled afterwards.

    python -m tests.system.faults [--full] [--only NAME] [--seed N]

Each fault is a module in `scenarios` with one function, `run`. The tests run them short, `make faults` in full.
"""
