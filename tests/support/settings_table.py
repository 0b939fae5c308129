"""The table of settings in docs/configuration.md, made from the settings.

`python -m tests.support.settings_table` writes it anew.
"""

import json
import re

from memory.settings import Deployment, Settings
from tests.support.source_files import ROOT

PAGE = ROOT / "docs" / "configuration.md"
_TABLE = re.compile(r"\| setting \| default \|.*?\n\n", re.DOTALL)


def settings_table() -> str:
    lines = ["| setting | default | what it says |", "|---|---|---|"]
    for name, field in {**Settings.model_fields, **Deployment.model_fields}.items():
        default = field.default
        if not isinstance(default, str):
            default = "none" if default is None else json.dumps(default, default=str)
        default = default.strip('"')
        told = (field.description or "").replace("|", "\\|")
        lines.append(f"| `{name}` | {default or 'empty'} | {told} |")
    return "\n".join(lines) + "\n\n"


def with_table(text: str) -> str:
    return _TABLE.sub(lambda _: settings_table(), text)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
