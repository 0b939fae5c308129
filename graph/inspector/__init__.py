"""The inspector: memory as pages in a browser, on loopback or on a server."""

from graph.inspector.app import (
    STATUSES,
    foreign,
    inspector,
    problem_page,
    serve,
    shielded,
    with_headers,
)
from graph.inspector.visits import (
    BackgroundJobs,
    Host,
    NightProgress,
    Tell,
    Visit,
    read_form,
    render,
)

__all__ = [
    "STATUSES",
    "BackgroundJobs",
    "Host",
    "NightProgress",
    "Tell",
    "Visit",
    "foreign",
    "inspector",
    "problem_page",
    "read_form",
    "render",
    "serve",
    "shielded",
    "with_headers",
]
