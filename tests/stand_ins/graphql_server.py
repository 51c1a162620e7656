"""A GraphQL API of issues, whose queries graphql-core parses, validates and executes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from graphql import GraphQLError, build_schema, graphql_sync

from tests.stand_ins.http_server import Answer, Request

__all__ = ["SCHEMA", "Issues"]

SDL = """
scalar DateTime
scalar Cursor
enum State { OPEN CLOSED }
type User { login: String! email: String secret: String! friends(first: Int): [User!] }
type Label { name: String! color: String }
type LabelConnection { nodes: [Label!]! totalCount: Int! }
type Issue {
  id: ID! title: String state: State! updatedAt: DateTime! score: Float author: User
  labels(first: Int): LabelConnection! body(format: String!): String old: Int @deprecated
}
type Edge { cursor: String! node: Issue }
type PageInfo { hasNextPage: Boolean! endCursor: String }
type IssueConnection { nodes: [Issue] edges: [Edge] pageInfo: PageInfo! }
type Slice { rows: [Issue!]! next: Cursor }
type Repository { name: String! issues(since: DateTime, state: State, first: Int!, after: String): IssueConnection }
type Query {
  repository(owner: String!, name: String): Repository
  list(offset: Int!, limit: Int!): [Issue]
  page(page: Int!, per_page: Int): [Issue!]
  slice(cursor: Cursor): Slice!
  viewer: User
}
"""
SCHEMA = build_schema(SDL)


class Issues:
    """Issues behind a GraphQL server; ``broken`` raises for one value of (issue's id, field)."""

    def __init__(self, count: int = 7) -> None:
        self.count = count
        self.broken: set[tuple[str, str]] = set()
        self.documents: list[dict[str, Any]] = []
        self.script: list[Answer] = []

    def issue(self, number: int) -> dict[str, Any]:
        def field(name: str, value: Any) -> Callable[..., Any]:
            def resolve(info: Any, **arguments: Any) -> Any:
                if (str(number), name) in self.broken:
                    raise GraphQLError(f"no {name} today", extensions={"code": "FORBIDDEN"})
                return value

            return resolve

        return {
            "id": field("id", str(number)),
            "title": field("title", f"issue {number}"),
            "state": "OPEN",
            "updatedAt": field("updatedAt", f"2026-01-{number:02}T00:00:00Z"),
            "author": {"login": f"user{number}", "email": None, "secret": field("secret", "x")},
            "labels": lambda info, first=9: {
                "nodes": [{"name": f"l{n}"} for n in range(min(first, number % 3))],
                "totalCount": number % 3,
            },
            "body": lambda info, format: f"{format} of {number}",
        }

    def issues(self, info: Any, first: int, after: str = "0", since: str = "", state: Any = None) -> Any:
        if ("", "issues") in self.broken:
            raise GraphQLError("the list is gone")
        numbers = [n for n in range(1, self.count + 1) if f"2026-01-{n:02}T00:00:00Z" >= since and n > int(after or 0)]
        page = numbers[:first]
        nodes = [self.issue(number) for number in page]
        more = len(numbers) > first
        info_of_page = {"hasNextPage": more, "endCursor": str(page[-1]) if page else None}
        return {"nodes": nodes, "edges": [{"cursor": "c", "node": n} for n in nodes], "pageInfo": info_of_page}

    def slice(self, info: Any, cursor: Any = None) -> Any:
        start = int(cursor or 0)
        end = start + 3
        rows = [self.issue(n) for n in range(start + 1, min(end, self.count) + 1)]
        return {"rows": rows, "next": str(end) if end < self.count else None}

    def respond(self, request: Request) -> Answer:
        document = json.loads(request.body)
        self.documents.append(document)
        if self.script:
            return self.script.pop(0)
        every = [self.issue(number) for number in range(1, self.count + 1)]
        root = {
            "repository": lambda info, owner, name=None: (
                {"name": name, "issues": self.issues} if owner == "ada" else None
            ),
            "list": lambda info, offset, limit: every[offset : offset + limit],
            "page": lambda info, page, per_page=3: every[(page - 1) * per_page : page * per_page],
            "slice": self.slice,
            "viewer": {"login": "ada"},
        }
        result = graphql_sync(SCHEMA, document["query"], root, variable_values=document.get("variables"))
        answered = {"data": result.data, **({"errors": [e.formatted for e in result.errors]} if result.errors else {})}
        return Answer(200 if result.data is not None else 400, json.dumps(answered).encode())
