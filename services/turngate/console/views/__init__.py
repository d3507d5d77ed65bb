"""What pages show, made of what the wire brings: pure functions without a clock, one module a page.

A view makes every text visible that a model or a person wrote (`texts`), puts times beside how long ago they are
(`times`), and decides what may be done. A template only lays it out.
"""
