"""Refusals: why arms of a sweep cannot run on its models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeps.parsing.arm_parser import Candidate
from sweeps.parsing.condition_parser import KnownNames
from sweeps.parsing.yaml_reader import Document, KeyPath


@dataclass
class Refusals:
    """Which arms cannot run on which models, as far as their methods were called."""

    known_names: KnownNames
    known: set[tuple[str, str]] = field(default_factory=set)
    """Arms (by identity) and models whose methods were candidate."""
    reasons: dict[str, tuple[KeyPath, list[str | None]]] = field(default_factory=dict)
    """For each arm where it is written, and for each of its models why it cannot run there; `None` where it can."""

    def check_model(self, candidate: Candidate, model: str) -> None:
        """Check whether the methods of an arm can run on `model`, once for each model."""
        if not candidate.params or (candidate.key, model) in self.known:
            return
        network = self.known_names.models.network(model)
        if network is None:
            return  # a model of the hub, whose geometry the worker alone reads
        methods: Mapping[str, Any] = self.known_names.methods
        steps = zip(candidate.arm.stack, candidate.params, strict=True)
        reasons = (methods[step.method].refuses(params, network) for step, params in steps)
        self.known.add((candidate.key, model))
        self.reasons.setdefault(candidate.key, (candidate.path, []))[1].append(next((reason for reason in reasons if reason), None))

    def check(self, document: Document) -> None:
        """Raises `SweepError` for the first arm that can run on no model."""
        for path, reasons in self.reasons.values():
            if all(reasons):
                raise document.error(path, f"cannot run on any model of this sweep: {reasons[0]}")
