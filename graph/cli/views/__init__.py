"""What the command line prints: the screen, and a view of each thing that it shows."""

from graph.cli.views.console import (
    FIRST_WORDS,
    Screen,
    clean,
    counted,
    date,
    day,
    moment,
    one_line,
    ruled_table,
)
from graph.cli.views.log import log_view
from graph.cli.views.memory import FLAGS, correction_view, memory_counts, memory_view, recall_view
from graph.cli.views.night import STEP_NAMES, night_line, night_view, nights_view, taken_back
from graph.cli.views.question import answer_line, arguments, question_view, still_waiting
from graph.cli.views.run import (
    CLEAR,
    ProgressScreen,
    Talk,
    Transcript,
    cost_line,
    footer,
    mode_line,
    sent_line,
    stop_line,
    tool_line,
    what_next,
)
from graph.cli.views.status import status_view

__all__ = [
    "CLEAR",
    "FIRST_WORDS",
    "FLAGS",
    "STEP_NAMES",
    "ProgressScreen",
    "Screen",
    "Talk",
    "Transcript",
    "answer_line",
    "arguments",
    "clean",
    "correction_view",
    "cost_line",
    "counted",
    "date",
    "day",
    "footer",
    "log_view",
    "memory_counts",
    "memory_view",
    "mode_line",
    "moment",
    "night_line",
    "night_view",
    "nights_view",
    "one_line",
    "question_view",
    "recall_view",
    "ruled_table",
    "sent_line",
    "status_view",
    "still_waiting",
    "stop_line",
    "taken_back",
    "tool_line",
    "what_next",
]
