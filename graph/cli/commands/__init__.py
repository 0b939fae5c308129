"""The commands, by theme. `graph.cli.program` lists them and imports the one that is called."""
