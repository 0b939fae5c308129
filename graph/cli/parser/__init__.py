"""The commands and their options, by theme. What they do stands beside this folder."""
