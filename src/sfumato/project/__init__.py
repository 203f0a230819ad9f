"""A project folder: sfumato.yaml says where the data is, whom to hide and what may be spent."""

from typing import Any

from .accounts import Accounts
from .entrance import open_project
from .problems import ProjectError
from .project import Project

__all__ = ["Accounts", "Project", "ProjectError", "json_schema", "open_project"]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of sfumato.yaml, for editors."""
    from .published import project_schema

    return project_schema()
