"""The reusable holdout: Dwork, Feldman, Hardt, Pitassi, Reingold, Roth, "The reusable holdout" (Science 2015).

    python -m bench.holdout [--quick] [--check] [--seed N]

Coins that have nothing to do with the label are picked because they agree with it on the training set *and* on the
holdout, then the holdout is asked how good the classifier made of them is. Reused as it is, it says 64 %; the truth is
50 %. Through Thresholdout it says about 50 %.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.bars import Bar, bars_block
from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, mechanisms, schema
from sfumato.errors import PrivacyWarning

_COUNT = 1000
_PACKED = 48  # attributes to a column, one bit each
Coins = NDArray[np.int8]


@dataclass(frozen=True)
class Result:
    """What was said of the accuracy, and what it is."""

    reused: float
    reused_fresh: float
    thresholdout: float
    holdout: float
    fresh: float
    crossings: int
    epsilon: float
    seconds: float


def experiment(rng: np.random.Generator, *, rows: int, attributes: int, picks: int, count: int) -> Result:
    """Threshold and noise are those of the paper at 10,000 rows, 0.04 and 0.01, and follow the spread of a mean."""
    threshold, tau = 4 / np.sqrt(rows), 1 / np.sqrt(rows)
    sets = [_made(rng, rows, attributes) for _ in range(3)]
    (train, train_y), (hold, hold_y), (fresh, fresh_y) = sets
    weights = _means(train, train_y)
    naive = _classifier(weights, _means(hold, hold_y), picks, rows)

    unit = Unit(change="replace")
    columns = _packed(hold, hold_y)
    table = {name: schema.whole(0, 2**_PACKED - 1) for name in columns if name != "label"} | {"label": schema.flag()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        plan = mechanisms.Thresholdout(
            threshold=float(threshold), tau=float(tau), sensitivity=Fraction(2, rows), count=count, protects=unit
        )
        ledger = MemoryLedger({"holdout": Budget(epsilon=plan.price())})
        curator = Curator(Private("holdout", columns, unit=unit, schema=Schema.of(**table)), ledger)
    start = time.perf_counter()
    with curator.session(plan) as session:
        said = session.ask((_agreement(unit, attributes, rows, table), weights))
        if said.size < attributes:
            raise RuntimeError("the session ended early: give a larger count")
        chosen = _classifier(weights, said, picks, rows)
        told = session.ask((_accuracy(unit, chosen, rows, table), _right(train, train_y, chosen)))
        crossings = sum(int(np.sum(each)) for each in plan.overfits(session.release.raw))
    return Result(
        reused=_right(hold, hold_y, naive),
        reused_fresh=_right(fresh, fresh_y, naive),
        thresholdout=told,
        holdout=_right(hold, hold_y, chosen),
        fresh=_right(fresh, fresh_y, chosen),
        crossings=crossings,
        epsilon=float(plan.price()),
        seconds=time.perf_counter() - start,
    )


def _made(rng: np.random.Generator, rows: int, attributes: int) -> tuple[Coins, Coins]:
    bits = np.unpackbits(rng.integers(256, size=(rows, -(-attributes // 8)), dtype=np.uint8), axis=1)[:, :attributes]
    return bits.astype(np.int8) * 2 - 1, (rng.integers(2, size=rows) * 2 - 1).astype(np.int8)


def _means(x: Coins, y: Coins) -> NDArray[np.float64]:
    """The mean of attribute times label, for every attribute: a whole number over rows, exact."""
    blocks = [
        y.astype(np.float32) @ x[:, start : start + 1000].astype(np.float32) for start in range(0, x.shape[1], 1000)
    ]
    return np.asarray(np.concatenate(blocks).astype(np.float64) / len(y))


def _classifier(weights: NDArray[np.float64], others: NDArray[np.float64], picks: int, rows: int) -> Coins:
    """Signs for the attributes that agree with the label on both sets, the strongest on the training set first."""
    least = 1 / np.sqrt(rows)
    fits = (np.abs(weights) >= least) & (np.abs(others) >= least) & (weights * others > 0)
    order = np.argsort(-np.abs(weights) * fits, kind="stable")[:picks]
    signs = np.zeros(weights.size, dtype=np.int8)
    signs[order] = np.sign(weights[order]) * fits[order]
    return signs


def _right(x: Coins, y: Coins, signs: Coins) -> float:
    votes = x[:, signs != 0].astype(np.int32) @ signs[signs != 0].astype(np.int32)
    return float(np.mean(np.where(votes >= 0, 1, -1) == y))


def _packed(x: Coins, y: Coins) -> dict[str, NDArray[Any]]:
    powers = np.left_shift(np.int64(1), np.arange(_PACKED, dtype=np.int64))
    columns: dict[str, NDArray[Any]] = {"label": y > 0}
    for start in range(0, x.shape[1], _PACKED):
        bits = (x[:, start : start + _PACKED] > 0).astype(np.int64)
        columns[f"bits {start}"] = bits @ powers[: bits.shape[1]]
    return columns


def _unpacked(rows: Any, attributes: int) -> tuple[Coins, Coins]:
    out = np.empty((len(rows), attributes), dtype=np.int8)
    for start in range(0, attributes, _PACKED):
        here = min(_PACKED, attributes - start)
        octets = rows[f"bits {start}"].values.astype("<u8").view(np.uint8).reshape(len(rows), 8)
        out[:, start : start + here] = np.unpackbits(octets, axis=1, bitorder="little", count=here)
    return out * 2 - 1, (rows["label"].values * 2 - 1).astype(np.int8)


def _agreement(unit: Unit, attributes: int, rows: int, table: dict[str, Any]) -> bounds.Declared:
    """Means of products of -1 and 1 over a public number of rows: each moves by at most 2/rows."""
    labels = [f"attribute {j}" for j in range(attributes)]
    return bounds.declared(
        lambda data: _means(*_unpacked(data, attributes)),
        unit,
        reads=table,
        labels=labels,
        l1=Fraction(2 * attributes, rows),
        l2=Fraction(2 * attributes, rows),
        linf=Fraction(2, rows),
    )


def _accuracy(unit: Unit, signs: Coins, rows: int, table: dict[str, Any]) -> bounds.Declared:
    """A share of a public number of rows."""
    one = Fraction(1, rows)
    return bounds.declared(
        lambda data: _right(*_unpacked(data, signs.size), signs),
        unit,
        reads=table,
        labels=["accuracy"],
        l1=one,
        l2=one,
        linf=one,
    )


def bars(result: Result) -> list[Bar]:
    """The published experiment: reuse overfits by more than ten points, Thresholdout does not."""
    overfit, off = result.reused - result.reused_fresh, abs(result.thresholdout - result.fresh)
    return [
        Bar("reused holdout: said - fresh ≥ 0.10", f"{overfit:.3f}", kept=overfit >= 0.10),
        Bar("Thresholdout: |said - fresh| ≤ 0.08", f"{off:.3f}", kept=off <= 0.08),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 rows and attributes instead of 10,000")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows, picks = (2000, 100) if given.quick else (10_000, 500)
    result = experiment(np.random.default_rng(given.seed), rows=rows, attributes=rows, picks=picks, count=_COUNT)
    print(f"{rows} rows, {rows} attributes, {picks} picked; no signal, so the truth is 50 %\n")
    print(f"{'':26}{'said':>8}{'holdout':>10}{'fresh':>8}")
    print(f"{'holdout, reused as it is':26}{result.reused:8.3f}{result.reused:10.3f}{result.reused_fresh:8.3f}")
    print(f"{'Thresholdout':26}{result.thresholdout:8.3f}{result.holdout:10.3f}{result.fresh:8.3f}")
    print(f"\n{result.crossings} of {_COUNT} crossings; epsilon {result.epsilon:.3g}; {result.seconds:.1f} s to answer")
    if not given.check:
        return 0
    found = bars(result)
    print("\n" + bars_block(found))
    return 0 if all(bar.kept for bar in found) else 1


if __name__ == "__main__":
    sys.exit(main())
