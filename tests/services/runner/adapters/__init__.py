"""Adapters, run for real: the agents are small scripts."""
