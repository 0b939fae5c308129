"""The Grafana dashboard of the examples asks for all metrics that there are, and for no others."""

import json
import re

from prometheus_client import REGISTRY

from memory import telemetry
from tests.support.source_files import ROOT

DASHBOARD = json.loads((ROOT / "examples/grafana/circadian.json").read_text())
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def metrics() -> dict[str, set[str]]:
    """The product's metrics, each with the names under which it is asked for."""
    assert telemetry.exposition()
    return {
        metric.name: {metric.name + suffix for suffix in SUFFIXES[metric.type]}
        for metric in REGISTRY.collect()
        if metric.name.startswith("circadian_")
    }


def asked() -> set[str]:
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return set(re.findall(r"circadian_\w+", " ".join(queries)))


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    assert asked() - set().union(*metrics().values()) == set()


def test_every_metric_is_on_the_dashboard() -> None:
    assert [name for name, names in metrics().items() if names.isdisjoint(asked())] == []


def test_no_panel_stands_on_another() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in DASHBOARD["panels"]})
