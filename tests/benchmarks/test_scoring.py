from benchmarks.scoring import score, total


def test_scoring_compares_words_and_not_spelling() -> None:
    """Case, punctuation and digits make no word errors; a missing word makes one."""
    one = score("turn the lights off at five", "Turn the lights off at 5.", "turn the lights, at five")
    assert (one.words, one.direct_errors, one.path_errors) == (6, 0, 1)


def test_scoring_sees_a_lost_first_or_last_word() -> None:
    """The direct decode's end words must stand at the path's ends, within three words."""
    direct = "please book a table for two people at seven"
    assert score(None, direct, "Please book a table for two people at seven").ends_kept
    assert score(None, direct, "so, please book a table for two people at seven o'clock").ends_kept
    assert not score(None, direct, "book a table for two people at seven").ends_kept
    assert not score(None, direct, "please book a table for two people").ends_kept
    assert not score(None, direct, "").ends_kept


def test_totals_weigh_clips_by_their_words() -> None:
    """Rates are errors over all words; clips without a known text count for their ends only."""
    totals = total(
        [
            score("a b c d e f g h i j", "a b c d e f g h i j", "a b c d e f g h i x"),
            score("yes", "yes", "yes"),
            score(None, "hello there", "goodbye"),
        ]
    )
    assert (totals.clips, totals.words, totals.ends_kept) == (3, 11, 1)
    assert totals.path_percent == 9.09
    assert totals.direct_percent == 0.0
    assert totals.points == 9.09
