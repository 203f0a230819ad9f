"""The library's own adversary: attacks that sfumato must withstand, and planted faults that its audits must find.

attacks      the attacks, each with a planted bug that it must break; `sfumato attack` runs them
mutants      mechanisms, ledgers and pipelines that claim a price they do not hold
mutation     small faults planted in the library itself, and who of the audit notices
power        the chance that an audit catches a fault

It is a distribution of its own, of the same version as the library: nobody who releases data needs it.
"""

from __future__ import annotations

VERSION = "0.1.0"
