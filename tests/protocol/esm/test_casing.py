import pytest

from turngate_protocol.esm.casing import fold, lower


@pytest.mark.parametrize(
    ("one", "other"), [("Σίσυφος", "ΣΊΣΥΦΟΣ"), ("STRAẞE", "straße"), ("disk \u212a", "DISK K"), ("ſ", "S"), ("ᾼ", "ᾳ")]
)
def test_simple_folding_makes_these_equal(one, other):
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("straße", "strasse"), ("İ", "i"), ("ı", "i"), ("ŉ", "ʼn")])
def test_simple_folding_keeps_these_apart(one, other):
    assert fold(one) != fold(other)


def test_every_character_folds_to_one():
    assert all(len(fold(chr(code))) == 1 for code in range(0x110000) if not 0xD800 <= code < 0xE000)


@pytest.mark.parametrize(("text", "lowered"), [("İ", "i"), ("QUOTA", "quota"), ("ΑΣ", "ασ"), ("ẞ", "ß")])
def test_lowering_looks_at_one_character_at_a_time(text, lowered):
    assert lower(text) == lowered
