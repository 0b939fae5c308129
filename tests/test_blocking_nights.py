"""Nights from blocking code."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.agent import open_agent
from memory.errors import InputError
from tests.clock import Clock
from tests.dreamers import SETTINGS, dreamer


def test_a_night_is_tried_out_let_go_slept_through_and_taken_back(
    tmp_path: Path, clock: Clock
) -> None:
    model = dreamer()
    opening = open_agent(tmp_path, model=model, embedder="offline", settings=SETTINGS, clock=clock)
    with opening as agent:
        agent.invoke({"events": [{"id": "e1", "sender": "Ben", "text": "The glass is late."}]})
        tried = agent.sleep(dry_run=True)
        assert agent.night("last") == tried
        assert agent.discard_night("last")["status"] == "discarded"
        with pytest.raises(InputError, match="discarded: there is nothing to apply"):
            agent.apply_night(str(tried["id"]))
        slept = agent.sleep()
        assert (slept["status"], slept["complete"]) == ("complete", True)
        assert [one["text"] for one in agent.everything()] == ["The glass is late."]
        assert agent.undo_night(str(slept["id"]))["status"] == "undone"
        assert [one["status"] for one in agent.nights()] == ["discarded", "undone"]
        assert agent.apply_night(str(agent.sleep(dry_run=True)["id"]))["status"] == "complete"
        nothing = agent.sleep(dry_run=True)
    assert (nothing["id"], nothing["dry_run"], nothing["operations"]) == (None, True, [])
