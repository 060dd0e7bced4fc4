# SPDX-License-Identifier: Apache-2.0
"""Reasons why findings lead to no operation: a policy turns it off, or neither a policy nor a setting requires it.

Must not know any wire format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from limnos.formats.gravitino.policies import TABLE_MAINTENANCE
from limnos.rooms.maintenance.formats.assessment import COMPACT, DELETES, EXPIRE, MANIFESTS
from limnos.rooms.maintenance.formats.lance_tables import INDEXES
from limnos.rooms.maintenance.services.policies import EffectivePolicy, deciding_policy, kind_setting
from limnos.services.request.defaults import MaintenanceDefaults


def turns_off(policy: EffectivePolicy, kind: str) -> bool:
    """Return whether the content of a policy that decides about a kind of operation turns it off."""
    return policy.policy_type == TABLE_MAINTENANCE and not kind_setting(policy, kind)


def inactions(
    settings: MaintenanceDefaults,
    policies: Mapping[str, EffectivePolicy],
    *,
    kinds: Sequence[str],
    loadable: Collection[str],
    is_lance: bool,
) -> dict[str, str]:
    """Return the reason for each kind of finding that leads to no operation. The names of policies that are not
    `loadable` for the caller are omitted.
    """
    reasons = {}
    for kind in kinds:
        reason = _inaction(settings, policies, kind=kind, loadable=loadable, is_lance=is_lance)
        if reason is not None:
            reasons[kind] = reason
    return reasons


def _inaction(
    settings: MaintenanceDefaults,
    policies: Mapping[str, EffectivePolicy],
    *,
    kind: str,
    loadable: Collection[str],
    is_lance: bool,
) -> str | None:
    if kind not in (COMPACT, DELETES, MANIFESTS, EXPIRE, INDEXES):
        return None
    policy = deciding_policy(policies, kind)
    if policy is None and is_lance:
        return "no policy decides about it, and settings do not apply to Lance tables"
    if policy is None:
        is_on, name = (
            (settings.expire, "maintenance.expire_snapshots")
            if kind == EXPIRE
            else (settings.rewrite, "maintenance.rewrite_files")
        )
        return None if is_on else f"no policy decides about it, and the setting {name} is off"
    name = f"policy {policy.name}" if policy.name in loadable else "a policy that you may not load"
    if not policy.is_enabled:
        return f"{name} decides about it and is disabled"
    return f"off in {name}" if turns_off(policy, kind) else None
