"""Imported by the process that others are forked from: it has lived through a day and a night.

What is made at first use, as the forms of tools, is then there in each process: half of its time
went there. Its counters stand at zero again.
"""

import asyncio
import tempfile
from pathlib import Path

from prometheus_client.metrics import MetricWrapperBase

from memory import telemetry
from memory.settings import Settings
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.crash_model import dream_of_all
from tests.support.places import in_memory
from tests.support.scripted import scripted


async def _live(folder: Path) -> None:
    model, settings = scripted(otherwise=dream_of_all), Settings(min_observations=1)
    async with opened(folder, model, Clock(), settings=settings) as agent:
        for text in ("Build a tavern", "Ada lives in Oslo (8)", "Ada lives in Rome (8)"):
            await agent.ainvoke(said(text))
        await agent.sleep()


with tempfile.TemporaryDirectory(dir=in_memory()) as folder:
    asyncio.run(_live(Path(folder)))
for metric in vars(telemetry).values():
    if isinstance(metric, MetricWrapperBase):
        metric.clear()
        metric._metric_init()  # type: ignore[no-untyped-call]
