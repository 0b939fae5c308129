"""What a view looks like: as plain text, and with the escape codes of a terminal."""

from io import StringIO

from rich.console import Console, RenderableType


def plain(view: RenderableType, width: int = 100) -> str:
    """What a person reads, without colours and without the spaces that fill lines up."""
    out = StringIO()
    Console(file=out, width=width, markup=False, emoji=False, highlight=False).print(view)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def styled(view: RenderableType) -> str:
    out = StringIO()
    console = Console(
        file=out, width=100, force_terminal=True, color_system="standard", markup=False
    )
    console.print(view)
    return out.getvalue()
