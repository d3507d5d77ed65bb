"""Blocks as agents write them, and the pieces that hostile ones are made of."""

from hypothesis import strategies as st

TYPICAL = """\
status: success
summary: The retry policy and its tests are in place
artifacts:
  - src/retry.py
  - tests/test_retry.py
  - docs/retry.md
memory_refs:
  - kb/retry-policy
  - kb/decisions/12
follow_up: Run the soak test before the release
confidence: 0.85
"""


def block(body: str) -> str:
    return f"<pando:conclusion>{body}</pando:conclusion>"


# What YAML gives a meaning to, and what it refuses: random text alone seldom meets a rule.
PIECES = [
    "status: success\n", "summary: ", "summary: |\n  ", "artifacts:\n", "- a\n", "- ", "memory_refs: [",
    "confidence: ", "follow_up: ", "a: b\n", ": ", "? ", "[", "]", "{", "}", ", ", "&a ", "*a", "<<: *a\n", "!!str ",
    "!!binary ", "!x ", "%TAG ! x\n", "---\n", "...\n", "# c\n", "\n", "\r\n", "\r", "\t", " ", '"', "'", "\\ud800",
    "|\n", ">-\n", "~", "0x1F", ".nan", "-.inf", "1e999", "0.5", "7" * 30, "\x00", "\x1b[2J", "\x7f", "\x85",
    "\u2028", "\ufeff", "\ud800", "\U0010fffd", "é", "😀", "<pando:conclusion>", "</pando:conclusion>", "```\n",
    "word",
]  # fmt: skip

BODIES = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=40).map("".join)
OUTPUTS = st.one_of(
    BODIES, BODIES.map(block), st.tuples(BODIES, BODIES, BODIES).map(lambda t: t[0] + block(t[1]) + t[2])
)
