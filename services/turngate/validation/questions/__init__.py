"""Questions, a part of the validation service: asked by runners, decided once by people or by policy."""
