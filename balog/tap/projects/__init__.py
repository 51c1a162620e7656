"""New projects: a tap with tests, CI and README from a name or an OpenAPI document.

No text of a document is executed: it reaches code as quoted literals only, and names are made anew.
"""

from __future__ import annotations

from balog.tap.projects.model import ApiDescription
from balog.tap.projects.names import project_name
from balog.tap.projects.project import example, project_files, write_project

__all__ = ["ApiDescription", "describe", "example", "project_files", "project_name", "write_project"]


def describe(place: str) -> ApiDescription:
    """Return the description of an API, from its OpenAPI document.

    Args:
        place: a file or a URL.

    Raises:
        SchemaError: the document cannot be read, or is not one.
    """
    from balog.tap.projects.openapi import describe_api

    return describe_api(place)
