"""The validation service: it gives each report attempt and each ending of a turn its one outcome."""
