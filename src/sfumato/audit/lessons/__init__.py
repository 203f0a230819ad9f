"""What happens without differential privacy: attacks that history knows, on made-up people, each beside a release that
withstands it.

    print(lessons.LESSONS["census"]().tell())
"""

from __future__ import annotations

from collections.abc import Callable

from . import census, homogeneity, linkage, questions, ratings, subset_sums
from .base import Lesson

__all__ = ["LESSONS", "Lesson"]

LESSONS: dict[str, Callable[[], Lesson]] = {
    "subset-sums": subset_sums.lesson,
    "census": census.lesson,
    "linkage": linkage.lesson,
    "ratings": ratings.lesson,
    "homogeneity": homogeneity.lesson,
    "differencing": questions.differencing,
    "averaging": questions.averaging,
}
