"""Coverage-guided fuzzing of everything that takes foreign bytes: `python -m tests.fuzz`, or `make fuzz`.

`targets` is the table. A target takes bytes, feeds them to our code as the outside does, and raises where something
other than the documented error comes out, or a result breaks what is promised of it. Findings are kept as small files
in `corpus/NAME`, which `test_corpus` replays in the ordinary test run.
"""
