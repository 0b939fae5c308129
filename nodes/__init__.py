"""The graph's nodes, named by verbs: state in, partial state out. Imports tools and memory."""
