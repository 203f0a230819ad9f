"""Small faults planted in the library itself, one at a time, and who of the audit's own tools notices.

An auditor that finds nothing has shown nothing unless it would have found something. So every fault here is a slip that
somebody could make in one line of the library: a halved scale, a clamp left out, a charge given back. Each is planted
in a process of its own, where the tools of the audit then run as they always do. What they notice is killed; what they
do not is a hole in them. An honest process, with nothing planted, must get through all of them.

    python -m sfumato_referee.mutation            all of them, as a table
    sfumato attack G1                           the same as an attack: at least 29 of 30 must be noticed
"""

from __future__ import annotations

from .mutant import AREAS, Mutant
from .shelf import MUTANTS, QUICK
from .trying import Opinion, Tried, run, summed_up

__all__ = ["AREAS", "MUTANTS", "QUICK", "Mutant", "Opinion", "Tried", "run", "summed_up"]
