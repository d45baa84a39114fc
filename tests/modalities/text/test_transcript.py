"""Partial transcripts only ever grow."""

from hypothesis import given
from hypothesis import strategies as st

from modalities.text.transcript import LocalAgreement

WORDS = st.lists(st.sampled_from(["turn", "on", "the", "light", "lights", "now", "please"]), max_size=8)


def test_local_agreement_shows_what_two_hypotheses_share() -> None:
    """Only the common prefix of successive hypotheses is shown, never the last word, which may be cut."""
    agreement = LocalAgreement()
    assert agreement.hypothesis("turn on the") == ""
    assert agreement.hypothesis("Turn on the lie") == "Turn on the"
    assert agreement.hypothesis("Turn on the light in") == ""
    assert agreement.hypothesis("Turn on the light in here") == " light in"
    assert agreement.agreed == "Turn on the light in"


def test_local_agreement_completes_to_the_final_text() -> None:
    """The final text is appended where it continues what was shown, else nothing is: it replaces it."""
    agreement = LocalAgreement()
    agreement.hypothesis("turn on the light")
    agreement.hypothesis("turn on the light now")
    assert agreement.final("Turn on the light now.") == " now."
    assert agreement.final("Burn the light") == ""


@given(st.lists(WORDS, max_size=6), WORDS)
def test_local_agreement_deltas_join_to_what_is_agreed(hypotheses: list[list[str]], final: list[str]) -> None:
    """Whatever a recogniser thinks, the deltas only append."""
    agreement = LocalAgreement()
    shown = ""
    for words in hypotheses:
        shown += agreement.hypothesis(" ".join(words))
        assert shown == agreement.agreed
    rest = agreement.final(" ".join(final))
    if rest:
        assert (shown + rest).split()[len(shown.split()) :] == final[len(shown.split()) :]
