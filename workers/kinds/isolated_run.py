"""One arm of a generation job in a process of its own: `python -m workers.kinds.isolated_run <
job.json` prints its metrics.
"""

import json
import sys
import time

import torch

from sweeps.model.job import Job
from workers.arms.language import build_language, cut_texts, workload
from workers.measure.process_state import use_threads
from workers.measure.readings import peak_memory
from workers.measure.samples import metric_value
from workers.measure.timer import synchronise
from workers.models.share_weights import kept_models

ISOLATED = {"rss_before": "rss_isolated"} | {
    name: f"{name}_isolated" for name in ("peak_rss", "cuda_peak_allocated", "cuda_peak_reserved")
}
"""The metrics of memory by their names in a process that runs one arm only."""


def measure_isolated() -> None:
    """Build the job's only arm, which overrides nothing, and run its workload once; what is not
    eager, once before.

    `load_s`: from the start of loading until the arm could run. `peak_rss_isolated` and, on CUDA,
    `cuda_peak_allocated_isolated` and `cuda_peak_reserved_isolated`: peaks while the workload runs,
    what loading needed for itself being freed; `rss_isolated` is what was resident before, what
    compiling left included. The unmodified model is freed: only what the arm itself holds counts.
    """
    job = Job.model_validate_json(sys.stdin.read())
    own = job.condition
    use_threads(own)
    with torch.inference_mode():
        started = time.perf_counter()
        model = build_language(own, job.arms[0], job.content_hashes)
        synchronise(own.device)
        load_s = time.perf_counter() - started
        work = workload(own, cut_texts(job))
        kept_models.cache_clear()
        if own.runtime != "eager":
            work.run(model)
        with peak_memory(own.device, model.steps.captured_bytes if model.steps else 0) as memory:
            work.run(model)
    metrics = [metric_value("load_s", load_s, n=1)]
    metrics += [
        metric_value(ISOLATED[peak.name], peak.value, n=1)
        for peak in memory
        if peak.name in ISOLATED
    ]
    sys.stdout.write("\n" + json.dumps([metric.model_dump() for metric in metrics]) + "\n")


if __name__ == "__main__":
    measure_isolated()
