"""The vision transformers that a sweep may name: generated data, so that planning needs neither timm nor torch."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from sweeps.method import Network

FILE = files("sweeps") / "catalogue.json"


@cache
def networks() -> Mapping[str, Network]:
    """Every known network by its timm name; `python -m workers.models.catalogue` writes the data anew."""
    facts = json.loads(FILE.read_text(encoding="utf-8"))
    return MappingProxyType({name: Network(name=name, **each) for name, each in facts.items()})
