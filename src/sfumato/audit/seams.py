"""The places inside the library where a fault may be planted, by name.

Whoever tests the audit plants faults in single lines of the library: a boundary that is lost, a unit that is not
compared. What such a line is called is the library's own affair, so the places are listed here, beside it: rename one,
and this file is the only one that knows. A test looks every place up. Nothing here plants anything; the faults are in
the referee, which is not installed where data is released.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Seam:
    """An attribute of a module, or of a class of one.

    place  the module below `sfumato`, and behind a colon the names, such as "curator:Curator._check"
    does   what stands there
    """

    place: str
    does: str

    @property
    def name(self) -> str:
        return self.place.partition(":")[2].rpartition(".")[2]

    def owner(self) -> Any:
        """The module or the class that has it."""
        module, _, names = self.place.partition(":")
        owner = import_module(f"sfumato.{module}")
        for name in names.split(".")[:-1]:
            owner = getattr(owner, name)
        return owner

    def value(self) -> Any:
        return getattr(self.owner(), self.name)


# noise
BOUNDARIES = Seam("noise.inversion:_boundaries", "the table that a draw is looked up in")
SIGN = Seam("noise.inversion:_sign", "gives a magnitude its sign")
GUMBEL = Seam("noise.race:_noise", "the noise that a selection races with")
# reading
REALS = Seam("column_kinds.block_reading:reals", "cells as real numbers")
CELL_BY_CELL = Seam("column_kinds.block_reading:cell_by_cell", "cells one by one, where no type says what they are")
FILLED = Seam("cells:_filled", "a column without its NULLs")
TEXTS = Seam("cells:_of_bytes", "a column of texts")
SOURCE_KEY = Seam("sources.duckdb_cells:_written", "a moment as the text of a key")
SOURCE_CELL = Seam("sources.duckdb_tables:cell_of", "a raw column as cells of one kind")
UNIT_OF_ROWS = Seam("query.relations.bases:_unit", "the unit of each row of a table, itself or through a key")
PAIRS_OF_KEYS = Seam("query.relations.bases:_pairs", "whose each key is that rows of other tables hold")
REWRITTEN = Seam("sources.duckdb_tables:RawTables.rewritten", "Parquet files that the engine fails on, written anew")
# accounting
PAIR = Seam("accounting.pairs:_pair", "the pair of laws whose loss is priced")
GROUP = Seam("accounting.group:_group", "an event for a group of units")
SHUFFLED = Seam("accounting.amplify.shuffle:_checked", "refuses what shuffling does not amplify")
MEMBER = Seam("accounting.budget:_member", "a member of an account, with its limit")
MEMBER_APART = Seam("accounting.budget:_member_apart", "the same where failures are counted elsewhere")
# queries, mechanisms and plans
GROUPED = Seam("bounds.base:Bounded._grouped", "the sensitivity for a whole unit")
SQL_WEIGHT = Seam("query.bounding:Sums._weight", "how much one unit counts")
SQL_SCALE = Seam("query.design:Design._scale", "the scale of the noise on a question")
ADDED = Seam("mechanisms.additive:Additive._run", "sum and noise, on the grid")
CROSSINGS = Seam("mechanisms.thresholds:GateConversation._above", "counts crossings from question to question")
NEW_KEYS = Seam("mechanisms.threshold_keys:ThresholdKeys._cases", "how high keys of a group may stand")
RESERVE = Seam("combine:Reserve._run", "runs a body on its own reserve")
CHILD_PAID = Seam("plan:Run._pay", "a child draws on the reserve")
# the door and the ledger
DOOR = Seam("private:Private._open", "opens the data with a receipt that was paid for it")
TABLES = Seam("private:Private._tables", "where the tables behind the door lie")
FITS = Seam("curator:Curator._check", "the plan's unit and schema are the data's")
SILENCE = Seam("errors:_SILENCE", "keeps warnings of a run from being seen")
STEPS_DRAWN = Seam("held:Stepwise._take", "draws steps in the ledger before they run")
STEPS_COUNTED = Seam("plan:Run._take", "counts steps, where no ledger is behind them")
COMMIT = Seam("ledger.stores.sqlite:SQLiteStore._commit", "what was written is kept")
PREPARE = Seam("ledger.stores.sqlite:SQLiteStore._prepare", "brings a file to today's schema")
TAKE_HEAD = Seam("ledger.stores.postgres:PostgresStore._take_head", "reads the end of the chain under its lock")
HEAD_HELD = Seam("ledger.proof.headed:_holds", "does the chain hold the head that is kept outside?")
ANCHOR_JUDGED = Seam("ledger.proof.anchored:AnchoredStore._judge", "does the chain hold what the anchor has seen?")
ANCHOR_ENTERED = Seam("ledger.proof.anchored:AnchoredStore._enter", "a writer publishes its token")
# training
MICRO_BATCH = Seam("learn.stepping:Stepper._part", "the records of a micro-batch")

SEAMS = tuple(value for value in list(vars().values()) if isinstance(value, Seam))
