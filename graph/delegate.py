"""The delegate subgraph: one sub-agent, with its own messages, works on one task."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph

from memory.settings import Settings
from nodes.delegate import (
    after_answer,
    after_briefing,
    ask_delegate,
    brief_delegate,
    report_result,
    use_delegate_tools,
)
from tools.delegation import DelegateOutput, DelegateState

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
