"""The delegate subgraph: one sub-agent, with its own messages, works on one task."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from memory.delegation import DelegateOutput, DelegateState
from memory.settings import Settings
from nodes.ask_delegate import after_answer, ask_delegate
from nodes.brief_delegate import after_briefing, brief_delegate
from nodes.report_result import report_result
from nodes.use_delegate_tools import use_delegate_tools

builder = StateGraph(DelegateState, context_schema=Settings, output_schema=DelegateOutput)
builder.add_node(brief_delegate)
builder.add_node(ask_delegate)
builder.add_node(use_delegate_tools)
builder.add_node(report_result)
builder.add_edge(START, "brief_delegate")
builder.add_conditional_edges("brief_delegate", after_briefing)
builder.add_conditional_edges("ask_delegate", after_answer)
builder.add_edge("use_delegate_tools", "ask_delegate")
builder.add_edge("report_result", END)

delegate = builder.compile(name="delegate")
