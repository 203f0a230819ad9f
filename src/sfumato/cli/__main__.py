"""`python -m sfumato.cli` is `sfumato`."""

from .start import main

main()
