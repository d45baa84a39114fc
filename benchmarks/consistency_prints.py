"""How near the cosines lie that fingerprints tell, from two prints and from a vector and a print."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console

from benchmarks.outcome import Claim, Outcome, Row, table
from consistency import fingerprint
from consistency.observation import Observation
from consistency.whitening import cosine

BANDS = ((-1.0, 0.05), (0.05, 0.3), (0.3, 0.6), (0.6, 0.9), (0.9, 1.01))
"""Of the true cosine; the first two hold those near a distance of 0.85."""
PAIRS = 1_500


def measure(pairs: Sequence[tuple[Observation, Observation]], outcome: Outcome, console: Console) -> None:
    """Adds a table of errors by band of the cosine; facts are left out, for they are meant to move the print."""
    plain = [(_bare(one), _bare(other)) for one, other in pairs[:: max(1, len(pairs) // PAIRS)]]
    # Neighbours in the list are unrelated: they fill the bands of small cosines.
    plain += [(one, plain[(at + 7) % len(plain)][1]) for at, (one, _) in enumerate(plain)]
    found = []
    for one, other in plain:
        true = cosine(one.vector, other.vector)
        if true is not None:
            print_of = fingerprint.fingerprint(other)
            found.append(
                (
                    true,
                    fingerprint.cosine(fingerprint.fingerprint(one), print_of),
                    fingerprint.cosine_to(one, print_of),
                )
            )
    if not found:
        return
    truth, hamming, asymmetric = np.array(found).T
    rows: list[Row] = []
    for low, high in BANDS:
        inside = (truth >= low) & (truth < high)
        if inside.any():
            rows.append(
                {
                    "cosine": f"{max(low, -1):.2f} to {min(high, 1):.2f}",
                    "n": int(inside.sum()),
                    "RMSE of two prints": float(np.sqrt(((hamming - truth)[inside] ** 2).mean())),
                    "RMSE of vector and print": float(np.sqrt(((asymmetric - truth)[inside] ** 2).mean())),
                }
            )
    outcome.tables["fingerprints"] = rows
    console.print(table("fingerprints: error of the cosine that they tell", rows))
    near = (truth > 0.0) & (truth < 0.3)
    if near.any():
        error = float(np.sqrt(((asymmetric - truth)[near] ** 2).mean()))
        outcome.claims.append(
            Claim(
                "fingerprints: RMSE near a distance of .85 at most .09 (vector and print)",
                error <= 0.09,
                error,
            )
        )


def _bare(observation: Observation) -> Observation:
    return replace(observation, facts=(), tokens=())
