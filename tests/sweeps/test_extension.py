"""A kind of job and a metric are added by their declarations alone: a copy of the package is edited
as the README describes.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import sweeps

KIND = """    KindSpec(
        name="robustness",
        modality="vision",
        payload="predictions",
        metrics=("flips",),
        independent_of=(*SPEED_FIELDS, *WORKLOAD_FIELDS),
    ),
)
KINDS: """
SECTION = '''class Robustness(KindSection):
    """How often predictions flip."""

    images: int | None = Field(default=None, ge=1)

    def protocol(self) -> Protocol:
        return Protocol(images=self.images, timeout_s=60.0)


class Jobs(FileSection):'''
METRIC = """    _loss("flips", "vision", "%", "flipped predictions", better="lower", floor=1.0, digits=1),
)
METRICS: """
SWEEP = """
schema: 1
name: toy
defaults: {model: digits_vit_64, weights: trained, corruption: jpeg, severity: 2}
methods: [{method: shrink, rate: 0.5}]
jobs: {robustness: {images: 8}}
"""
PROGRAM = """
import json, sys, types
from sweeps.geometry.vit_catalogue import networks
from sweeps.analysis.labels import conclude, effect_of
from sweeps.text.effects import effect_phrase
from sweeps.model.metrics import METRICS
from sweeps.model.method import Params
from sweeps.language.expand import expand_file
class Shrink(Params):
    rate: float
shrink = types.SimpleNamespace(__name__="shrink", __doc__="Toy.", PAPER="", VERSION=1, Params=Shrink, refuses=lambda *_: None)
found = expand_file("toy.yaml", text=sys.stdin.read(), methods={"shrink": shrink}, networks=networks(), auto="cpu")
(job,) = found.jobs
phrase = effect_phrase(conclude(effect_of(METRICS["flips"]), 2.5, 1.5, 3.5, verdict="worse"))
print(json.dumps([job.kind, job.condition.data, job.protocol.images, job.occupation, job.job_id, job.comparison_ids()[0], phrase]))
"""


def test_a_kind_and_a_metric_are_declarations(tmp_path: Path) -> None:
    """Three declarations are enough to parse, plan and hash jobs of a new kind, and to word its
    effects.
    """
    package = tmp_path / "sweeps"
    shutil.copytree(
        Path(sweeps.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    edits = {"model/kinds.py": (")\nKINDS: ", KIND), "model/metrics.py": (")\nMETRICS: ", METRIC)}
    edits["language/file_schema.py"] = ("class Jobs(FileSection):", SECTION)
    for name, (old, new) in edits.items():
        text = (package / name).read_text()
        assert text.count(old) == 1
        (package / name).write_text(text.replace(old, new))
    schema = package / "language/file_schema.py"
    quality = "    quality: Quality | None = None\n"
    schema.write_text(
        schema.read_text().replace(quality, f"{quality}    robustness: Robustness | None = None\n")
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=SWEEP,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kind, data, images, occupation, job_id, comparison_id, phrase = json.loads(done.stdout)
    assert (kind, data, images, occupation) == ("robustness", "digits", 8, "shared")
    assert len(job_id) == len(comparison_id) == 16
    assert phrase == "worse by 2.5 [1.5, 3.5] points"
