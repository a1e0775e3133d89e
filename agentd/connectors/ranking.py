"""Which tools fit some words: BM25 over their names, descriptions and parameters. Pure."""

import math
import re
from collections import Counter
from collections.abc import Sequence

_K1, _B = 1.2, 0.75  # the usual ones
_WORD = re.compile(r"[a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def words(text: str) -> list[str]:
    """Lower case, split at everything and inside of names; a plural counts as its singular."""
    found = _WORD.findall(_CAMEL.sub(" ", text).lower())
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in found]


def rank(query: str, documents: Sequence[str]) -> list[tuple[int, float]]:
    """Places in `documents` and scores above 0, the best first."""
    counted = [Counter(words(each)) for each in documents]
    lengths = [sum(each.values()) for each in counted]
    average = sum(lengths) / len(lengths) if lengths else 0.0
    scores = [0.0] * len(counted)
    for term in set(words(query)):
        holding = sum(1 for each in counted if term in each)
        if not holding:
            continue
        rarity = math.log(1 + (len(counted) - holding + 0.5) / (holding + 0.5))
        for place, each in enumerate(counted):
            often = each[term]
            if often:
                damped = _K1 * (1 - _B + _B * lengths[place] / average)
                scores[place] += rarity * often * (_K1 + 1) / (often + damped)
    found = [(place, score) for place, score in enumerate(scores) if score > 0]
    return sorted(found, key=lambda each: (-each[1], each[0]))
