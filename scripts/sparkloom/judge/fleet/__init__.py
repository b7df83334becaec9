"""A fleet: which of a site's groups stands where, by memory, GPU and rails, and what would make a refused one fit."""

from sparkloom.judge.fleet.plan import RULES, plan
from sparkloom.judge.fleet.result import FleetPlan

__all__ = ["RULES", "FleetPlan", "plan"]
