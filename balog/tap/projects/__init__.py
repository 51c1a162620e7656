"""New projects: a tap with tests, CI and README from a name or an OpenAPI document.

No text of a document is executed: it reaches code as quoted literals only, and names are made anew.
"""

from balog.tap.projects.model import ApiDescription
from balog.tap.projects.openapi import describe
from balog.tap.projects.project import example, project_files, write_project
from balog.tap.projects.source_text import project_name

__all__ = ["ApiDescription", "describe", "example", "project_files", "project_name", "write_project"]
