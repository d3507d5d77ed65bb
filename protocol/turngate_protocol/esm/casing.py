"""How the supervisor's rule book compares and lower-cases text.

The rules were written against Unicode's *simple* case mappings, one character to one character. Python's
`str.casefold` and `str.lower` use the full ones (`ß` becomes `ss`, `İ` becomes two characters, a final `Σ` becomes
`ς`), so two blockers that the rules tell apart would count as one. Nothing here knows what is compared.
"""


def fold(text: str) -> str:
    """Return `text` with simple case folding: `Σ`, `σ` and `ς` are equal afterwards, `ß` and `ss` are not."""
    return text.lower() if text.isascii() else "".join(map(_fold, text))


def lower(text: str) -> str:
    """Return `text` lower-cased one character at a time: `İ` gives `i`, whatever stands around it."""
    return text.lower() if text.isascii() else "".join(c.lower()[:1] for c in text)


def _fold(char: str) -> str:
    folded = char.casefold()
    if len(folded) == 1:
        return folded
    # A full folding of several characters: the simple one, where there is one, is the lower-case letter.
    lowered = char.lower()
    return lowered if len(lowered) == 1 else char
