"""Settings: their names and defaults, and the one place that says where each value comes from."""

from memory.settings.fields import GROUPS, KINDS, Audience, Deployment, Settings, Verdict
from memory.settings.sources import (
    OWN_REFUSED,
    Configuration,
    SettingSource,
    configured,
    edited,
    environment_only,
    file_value,
    from_environment,
    known_name,
    place_of_file,
    read_file,
    replacing,
    shown_value,
)

__all__ = [
    "GROUPS",
    "KINDS",
    "OWN_REFUSED",
    "Audience",
    "Configuration",
    "Deployment",
    "SettingSource",
    "Settings",
    "Verdict",
    "configured",
    "edited",
    "environment_only",
    "file_value",
    "from_environment",
    "known_name",
    "place_of_file",
    "read_file",
    "replacing",
    "shown_value",
]
