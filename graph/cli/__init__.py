"""The command line: `app` has the commands, the others what they do and show."""
