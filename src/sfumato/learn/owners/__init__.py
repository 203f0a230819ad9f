"""Whose numbers are whose, all the way through a model: every operation of a pass is followed, at every step.

memory      which parts of memory belong to which record
call        one operation with what it is called on
effects     what each operation does to records; indexing for look-ups
watching    a pass, watched
"""

from .memory import Mixed
from .watching import OwnerWatch, Trace, as_one, same

__all__ = ["Mixed", "OwnerWatch", "Trace", "as_one", "same"]
