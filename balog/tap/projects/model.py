"""The description of an API from which a project is generated, whatever document it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class StreamPlan:
    """A stream of a list endpoint.

    Attributes:
        name: the stream's name, and that of its schema's file.
        class_name: the name of its class.
        path: with placeholders of ``RestStream``.
        schema: the JSON Schema of a record.
        items: the path of the records in the response.
        paging: see ``balog.tap.paging.named``.
        params: the query.
        keys: the key properties.
        replication_key: the property that ``params`` filter by.
        since: the parameter with the bookmark.
        parent: the stream whose records fill the path.
        from_parent: properties that come from the parent's record.
    """

    name: str
    class_name: str
    path: str
    schema: dict[str, Any]
    items: str = ""
    paging: str = ""
    params: dict[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    replication_key: str = ""
    since: str = ""
    parent: StreamPlan | None = None
    from_parent: dict[str, str] = field(default_factory=dict)


@dataclass
class ApiSignIn:
    """How the tap signs in.

    Attributes:
        imports: names of ``balog.tap.credentials``.
        expression: the argument ``auth``; "" for none.
        settings: the config's settings for it, with their schemas.
        note: a sentence for the README.
    """

    imports: list[str] = field(default_factory=list)
    expression: str = ""
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    note: str = ""


@dataclass
class ApiDescription:
    """All that a project is generated from.

    Attributes:
        title: the API's name.
        base_url: the default of the setting ``base_url``; "" for none.
        settings: further settings, for parameters that all requests of a stream need.
        skipped: what was left out, a sentence each.
    """

    title: str
    base_url: str = ""
    streams: list[StreamPlan] = field(default_factory=list)
    sign_in: ApiSignIn = field(default_factory=ApiSignIn)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
