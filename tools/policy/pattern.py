"""The execution pattern: what a model call may do, composed of layers that only narrow (ruling 4).

Static settings, then the context, then an assessment: each is a set of limits, and their meet is
the pattern (architecture-context-system, section 3).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import reduce
from typing import TypeVar

from memory.records import Assessment, PatternState
from memory.settings import Settings
from tools.policy.contexts import SLEEP_CONTEXTS, ContextConfig, ExecutionMode

MODES: tuple[ExecutionMode, ...] = ("single_action", "react_loop", "plan_execute")
"""Narrowest first."""

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """What one layer allows. A value nearer to the default is wider."""

    mode: ExecutionMode = "plan_execute"
    max_iterations: int = sys.maxsize
    """Model answers that may ask for tools."""
    allowed_categories: frozenset[str] | None = None
    """None: all."""
    terminal_ends_loop: bool = False
    dangerous_requires_confirm: bool = False
    multi_tool_enabled: bool = True
    sub_agents_enabled: bool = True


SINGLE_ACTION = Limits(mode="single_action", max_iterations=1, multi_tool_enabled=False)
"""One tool call at most, then the answer (ruling 5)."""

_AT_MOST_TWO = Limits(max_iterations=2)
_CONFIRM = Limits(dangerous_requires_confirm=True)


def static_pattern(settings: Settings, asleep: bool) -> Limits:
    """Layer 1: the hard limits of the settings."""
    limits = Limits(
        max_iterations=(
            settings.max_iterations_sleep if asleep else settings.max_iterations_per_tick
        ),
        dangerous_requires_confirm=settings.dangerous_requires_confirm,
        sub_agents_enabled=settings.sub_agents_enabled,
    )
    return limits if settings.multi_action_enabled else meet(limits, SINGLE_ACTION)


def context_pattern(config: ContextConfig) -> Limits:
    """Layer 2: what the context allows."""
    categories = config.allowed_tool_categories
    return Limits(
        mode=config.execution_mode,
        max_iterations=config.max_iterations,
        allowed_categories=None if categories is None else frozenset(categories),
        terminal_ends_loop=config.terminal_ends_loop,
        dangerous_requires_confirm=config.dangerous_requires_confirm,
        multi_tool_enabled=config.allows_multi_tool,
        sub_agents_enabled=config.allows_sub_agents,
    )


def limits_of(assessment: Assessment) -> Limits:
    """Layer 3: an assessment's recommendation, and the specification's table of signals.

    A missing signal narrows nothing.
    """
    signals = assessment["signals"]
    pressure, event_class = signals.get("token_pressure"), signals.get("event_class")
    errors = signals.get("recent_errors", 0)
    rows = (
        (pressure == "critical", SINGLE_ACTION),
        (pressure == "high", _AT_MOST_TWO),
        (errors >= 3, SINGLE_ACTION),
        (errors >= 3, _CONFIRM),
        (errors >= 2, _AT_MOST_TWO),
        (event_class == "communication", SINGLE_ACTION),
        (event_class == "building", _CONFIRM),
    )
    return reduce(meet, (limits for holds, limits in rows if holds), _recommended(assessment))


def narrower(measured: Assessment, judged: Assessment) -> Assessment:
    """`judged` with the measurements of `measured`, and recommending no more than that."""
    both = meet(_recommended(measured), _recommended(judged))
    modes = (measured["recommended_mode"], judged["recommended_mode"])
    return {
        **judged,
        "event_class": measured["event_class"],
        "recommended_mode": None if modes == (None, None) else both.mode,
        "recommended_iterations": (
            None if both.max_iterations == sys.maxsize else both.max_iterations
        ),
        "recommend_confirm_dangerous": both.dangerous_requires_confirm,
        "signals": measured["signals"],
    }


def meet(a: Limits, b: Limits) -> Limits:
    """The widest limits that are within both: what both layers allow."""
    return Limits(
        mode=min(a.mode, b.mode, key=MODES.index),
        max_iterations=min(a.max_iterations, b.max_iterations),
        allowed_categories=_common(a.allowed_categories, b.allowed_categories),
        terminal_ends_loop=a.terminal_ends_loop or b.terminal_ends_loop,
        dangerous_requires_confirm=a.dangerous_requires_confirm or b.dangerous_requires_confirm,
        multi_tool_enabled=a.multi_tool_enabled and b.multi_tool_enabled,
        sub_agents_enabled=a.sub_agents_enabled and b.sub_agents_enabled,
    )


def select_execution_pattern(
    settings: Settings, context: ContextConfig, assessment: Limits | None = None
) -> PatternState:
    """Compose the layers; `source_layers` names for each value the layer that set it.

    The names are static, context and assessment; `allowed` where no layer narrowed the value.
    """
    layers = _layers(settings, context)
    if assessment is not None:
        layers.append(("assessment", assessment))
    return _state(*_compose(layers))


def narrowed(pattern: PatternState, settings: Settings, context: ContextConfig) -> PatternState:
    """`pattern` within the limits of the current settings; `source_layers` names what changed."""
    categories = pattern["allowed_categories"]
    limits = Limits(
        mode=pattern["mode"],
        max_iterations=pattern["max_iterations"],
        allowed_categories=None if categories is None else frozenset(categories),
        terminal_ends_loop=pattern["terminal_ends_loop"],
        dangerous_requires_confirm=pattern["dangerous_requires_confirm"],
        multi_tool_enabled=pattern["multi_tool_enabled"],
        sub_agents_enabled=pattern["sub_agents_enabled"],
    )
    composed, sources = _compose([("kept", limits), *_layers(settings, context)])
    told = {k: pattern["source_layers"][k] if v == "kept" else v for k, v in sources.items()}
    return _state(composed, told)


def _layers(settings: Settings, context: ContextConfig) -> list[tuple[str, Limits]]:
    return [
        ("static", static_pattern(settings, context.context_type in SLEEP_CONTEXTS)),
        ("context", context_pattern(context)),
    ]


def _state(limits: Limits, sources: dict[str, str]) -> PatternState:
    categories = limits.allowed_categories
    return {
        "mode": limits.mode,
        "max_iterations": limits.max_iterations,
        "allowed_categories": None if categories is None else sorted(categories),
        "terminal_ends_loop": limits.terminal_ends_loop,
        "dangerous_requires_confirm": limits.dangerous_requires_confirm,
        "multi_tool_enabled": limits.multi_tool_enabled,
        "sub_agents_enabled": limits.sub_agents_enabled,
        "source_layers": sources,
    }


def _recommended(assessment: Assessment) -> Limits:
    mode, iterations = assessment["recommended_mode"], assessment["recommended_iterations"]
    limits = Limits(
        max_iterations=sys.maxsize if iterations is None else max(1, iterations),
        dangerous_requires_confirm=assessment["recommend_confirm_dangerous"],
    )
    if mode is None:
        return limits
    return meet(limits, SINGLE_ACTION if mode == "single_action" else Limits(mode=mode))


def _compose(layers: Iterable[tuple[str, Limits]]) -> tuple[Limits, dict[str, str]]:
    """The meet of all layers, and for each field the last layer that narrowed it."""
    limits = Limits()
    sources = dict.fromkeys(asdict(limits), "allowed")
    for name, layer in layers:
        narrower = meet(limits, layer)
        before, after = asdict(limits), asdict(narrower)
        sources |= {key: name for key in after if after[key] != before[key]}
        limits = narrower
    return limits, sources


def _common(a: frozenset[T] | None, b: frozenset[T] | None) -> frozenset[T] | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b
