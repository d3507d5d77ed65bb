"""Benchmarks: each puts Turngate beside a ceiling that the same client reaches on the same machine in the same run."""
