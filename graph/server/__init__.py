"""What LangGraph Server runs beside the graph: who may do what, and routes of our own."""
