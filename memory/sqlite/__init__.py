"""LangGraph's checkpointer and store on SQLite, with the guarantees that this product gives."""
