"""Payloads: for each kind of job how its raw data are stored and compared."""

from collections.abc import Mapping
from typing import Any

from store.derive.item_stores import PredictionStore, TextScoreStore
from store.derive.payload_store import PayloadStore
from store.derive.profile_store import ProfileStore
from store.derive.sample_store import SampleStore
from sweeps.model.kinds import KINDS, Payload

STORES: Mapping[Payload, type[PayloadStore[Any]]] = {
    "samples": SampleStore,
    "predictions": PredictionStore,
    "text_scores": TextScoreStore,
    "profiles": ProfileStore,
}
"""By the payload of a kind."""


def payload_of(kind: str) -> PayloadStore[Any]:
    """How the raw data of a kind of job are stored."""
    spec = KINDS[kind]
    return STORES[spec.payload](spec)
