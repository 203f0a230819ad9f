"""A made-up hospital, to try everything on: patients, their visits, and the wards, with a project around them."""

from .folder import FILES, write_example
from .hospital import Hospital, hospital

__all__ = ["FILES", "Hospital", "hospital", "write_example"]
