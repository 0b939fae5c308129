"""What the command line prints: a view of each thing that it shows."""

from graph.cli.views.listener import LOOKING_BACK, Listener, News, follow
from graph.cli.views.night import STEP_NAMES, night_line, night_view, nights_view, taken_back
from graph.cli.views.night import progress as night_progress
from graph.cli.views.run import (
    CLEAR,
    ProgressScreen,
    Talk,
    Transcript,
    answer_line,
    arguments,
    cost_line,
    footer,
    mode_line,
    question_view,
    sent_line,
    still_waiting,
    stop_line,
    tool_line,
    what_next,
)
from graph.cli.views.status import briefing_view, goals_view, log_view, projects_view, status_view

__all__ = [
    "CLEAR",
    "LOOKING_BACK",
    "STEP_NAMES",
    "Listener",
    "News",
    "ProgressScreen",
    "Talk",
    "Transcript",
    "answer_line",
    "arguments",
    "briefing_view",
    "cost_line",
    "follow",
    "footer",
    "goals_view",
    "log_view",
    "mode_line",
    "night_line",
    "night_progress",
    "night_view",
    "nights_view",
    "projects_view",
    "question_view",
    "sent_line",
    "status_view",
    "still_waiting",
    "stop_line",
    "taken_back",
    "tool_line",
    "what_next",
]
