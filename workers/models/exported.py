"""Vision models exported as one graph of one shape and run by another engine: OpenVINO, ONNX
Runtime, or a library compiled ahead of time (AOTInductor).

`torch.export` gives one graph or fails, and no engine leaves an operator to torch: what runs, runs
whole. Every engine has as many threads as torch, and none of them spins after a forward, which
would slow whatever runs next. Before the first result counts, logits are compared with those of the
eager model (`check_parity`).
"""

import copy
import importlib
import io
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from workers.errors import Unsupported, extra_library
from workers.models.runtime import OneGraph

RunGraph = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Graph:
    """What an engine is made from."""

    program: ExportedProgram
    example: Tensor
    """Of its input, [B, channels, H, W]."""
    fused: bool
    """Whether attention may be fused."""
    calibration: Tensor | None
    """Images by which products are quantised to int8; `None` for other dtypes."""


INPUTS = 3
"""Inputs on which logits are compared."""
CALIBRATION, NORMAL_CALIBRATION = 64, 8
"""Images by which the ranges of activations are found for int8: of data, and of normal values,
which suffice where nothing but time is measured."""
INPUTS_DRAWN = 16
"""Inputs drawn until `INPUTS` are found on which the eager model itself is stable."""
JITTER = 2e-7
"""Relative change of an input under which a stable model changes its logits within the tolerance:
at a near-tie of scores a method that selects tokens takes others, in any engine."""
TOLERANCE = 1e-4
"""Of float32 logits, relative to the largest."""
TIMES_OWN_ERROR = 2.0
"""Of bfloat16 logits: how often the error of eager bfloat16 to float32 itself."""


NAMES_OPERATOR = ("aten.", "aten::", "OpOverload", "No conversion rule found")
"""Parts of lines of the exporters' errors that name the operator which they do not know."""


class Exported(OneGraph):
    """The eager model behind another engine, made on the first call and for its shape; larger
    batches run in parts of that.
    """

    def __init__(
        self, eager: nn.Module, runtime: str, *, fused: bool = True, int8: bool = False
    ) -> None:
        """`fused` is false where the engine must compute attention in its parts."""
        super().__init__(eager)
        self.runtime, self.fused, self.int8 = runtime, fused, int8
        self.calibration: Tensor | None = None
        """The images that int8 is calibrated on; `None`: values from the normal distribution."""
        self.conversion_s = 0.0
        """Seconds that export and conversion took."""
        self.difference = 0.0
        """The largest of the logits from eager's, as a share of the largest logit."""
        self.forward_exported: RunGraph | None = None

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """Logits [B, classes]. Raises `Unsupported` where the model cannot be exported, or the
        engine computes other logits.
        """
        if self.forward_exported is None:
            start = time.perf_counter()
            made = self._make(x_BCHW)
            self.conversion_s = time.perf_counter() - start
            self.difference = (
                agreement(self.eager, made, x_BCHW)
                if self.int8
                else check_parity(self.eager, made, x_BCHW, self.runtime)
            )
            self.forward_exported, self.batch = made, len(x_BCHW)
        if len(x_BCHW) == self.batch:
            return self.forward_exported(x_BCHW)
        return torch.cat([self.forward_exported(part) for part in torch.split(x_BCHW, self.batch)])

    def _make(self, x_BCHW: Tensor) -> RunGraph:
        try:
            with torch.inference_mode(mode=False), torch.no_grad(), _quiet():
                # a tensor of inference mode cannot be an example of an export
                example = x_BCHW.clone()
                program = torch.export.export(self.eager, (example,))
                images = self._calibration(example) if self.int8 else None
                return ENGINES[self.runtime](Graph(program, example, self.fused, images))
        except Unsupported:
            raise
        except Exception as error:
            reason = f"runtime {self.runtime} cannot run this model: {_reason(error)}"
            raise Unsupported(reason) from error

    def _calibration(self, example: Tensor) -> Tensor:
        if self.calibration is not None:
            return self.calibration
        return torch.randn(
            (NORMAL_CALIBRATION * len(example), *example.shape[1:]),
            generator=torch.Generator().manual_seed(0),
        )


def agreement(eager: nn.Module, exported: RunGraph, x_BCHW: Tensor) -> float:
    """The largest relative difference of logits on `INPUTS` inputs like `x_BCHW`, whatever it is:
    int8 is judged by accuracy.
    """
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(x_BCHW.shape, generator=generator) for _ in range(INPUTS)]
    with torch.inference_mode():
        return max(relative_error(exported(x), eager(x)) for x in inputs)


def check_parity(eager: nn.Module, exported: RunGraph, x_BCHW: Tensor, runtime: str) -> float:
    """Compare logits on `INPUTS` stable inputs like `x_BCHW`; the largest relative difference.

    In float32 it is that from eager's; in bfloat16 both are compared with float32. Raises
    `Unsupported` where it is beyond what the dtype allows, or too few inputs are stable.
    """
    generator = torch.Generator().manual_seed(0)
    exact = None if x_BCHW.dtype == torch.float32 else copy.deepcopy(eager).float()
    worst, compared = 0.0, 0
    for _ in range(INPUTS_DRAWN):
        x = torch.randn(x_BCHW.shape, generator=generator).to(x_BCHW)
        with torch.inference_mode():
            expected, found = eager(x).float(), exported(x).float()
            if exact is None:
                jittered = x * (1 + JITTER * torch.randn(x.shape, generator=generator))
                if relative_error(eager(jittered), expected) > TOLERANCE:
                    continue
                allowed = TOLERANCE
            else:
                truth = exact(x.float())
                allowed, expected = TIMES_OWN_ERROR * relative_error(expected, truth), truth
        error = relative_error(found, expected)
        if error > allowed:
            raise Unsupported(
                f"runtime {runtime} computes other logits than eager: they differ by {error:.1e} of"
                f" the largest, and {allowed:.1e} is allowed"
            )
        worst, compared = max(worst, error), compared + 1
        if compared == INPUTS:
            return worst
    unstable = f"{INPUTS_DRAWN - compared} of {INPUTS_DRAWN}"
    raise Unsupported(
        f"runtime {runtime} cannot be checked: on {unstable} inputs the eager model's own logits"
        f" change by more than {TOLERANCE:g} where the input changes by {JITTER:g}"
    )


def relative_error(found: Tensor, expected: Tensor) -> float:
    """The largest difference, as a share of the largest value."""
    return float((found - expected).abs().max() / expected.abs().max())


def _openvino(graph: Graph) -> RunGraph:
    openvino = extra_library("openvino")
    bfloat16 = graph.example.dtype == torch.bfloat16
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        # beside int8 products the rest is quicker in bfloat16
        "INFERENCE_PRECISION_HINT": "f32" if not bfloat16 and graph.calibration is None else "bf16",
        "ENABLE_CPU_PINNING": False,
    }
    if not graph.fused:
        options["SNIPPETS_MODE"] = "DISABLE"
    # what `openvino.convert_model` does, which also sends its maker a report over the network
    frontend = importlib.import_module("openvino.frontend").FrontEndManager()
    pytorch = frontend.load_by_framework("pytorch")
    decoders = importlib.import_module("openvino.frontend.pytorch.fx_decoder")
    decoded = decoders.TorchFXPythonDecoder.from_exported_program(graph.program)
    model = pytorch.convert(pytorch.load(decoded))
    model.reshape(list(graph.example.shape))
    if graph.calibration is not None:
        model = _quantised(model, graph.calibration, len(graph.example))
    request = openvino.Core().compile_model(model, "CPU", options).create_infer_request()

    def forward(x_BCHW: Tensor) -> Tensor:
        request.set_input_tensor(openvino.Tensor(x_BCHW.contiguous().numpy(), shared_memory=True))
        request.infer()
        return torch.from_numpy(request.get_output_tensor().data.copy())

    def forward_bfloat16(x_BCHW: Tensor) -> Tensor:
        # numpy has no bfloat16: its bits go in and out as integers
        bits = x_BCHW.contiguous().view(torch.int16).numpy()
        request.set_input_tensor(openvino.Tensor(bits, list(x_BCHW.shape), openvino.Type.bf16))
        request.infer()
        found = request.get_output_tensor().data.view("int16").copy()
        return torch.from_numpy(found).view(torch.bfloat16)

    return forward_bfloat16 if bfloat16 else forward


def _quantised(model: Any, images_BCHW: Tensor, batch: int) -> Any:
    """OpenVINO's model with its products in int8, by NNCF's calibration for transformers."""
    # while it is imported it decides whether to send its maker reports over the network
    with patch.dict(os.environ, NNCF_CI="1"):
        nncf = extra_library("nncf")
    nncf.set_log_level(logging.ERROR)
    batches = [part.numpy() for part in torch.split(images_BCHW, batch) if len(part) == batch]
    with redirect_stdout(io.StringIO()):  # bars of progress
        return nncf.quantize(
            model,
            nncf.Dataset(batches),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(batches),
        )


def _onnxruntime(graph: Graph) -> RunGraph:
    onnxruntime = extra_library("onnxruntime")
    extra_library("onnxscript")  # which torch's exporter needs
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    program = torch.onnx.export(graph.program, (graph.example,), dynamo=True, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        cast(torch.onnx.ONNXProgram, program).save(str(path))
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def forward(x_BCHW: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {name: x_BCHW.numpy()})[0])

    return forward


def _aoti(graph: Graph) -> RunGraph:
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    with tempfile.TemporaryDirectory() as folder:
        package = str(Path(folder) / "model.pt2")
        return cast(
            RunGraph,
            aoti_load_package(aoti_compile_and_package(graph.program, package_path=package)),
        )


ENGINES: dict[str, Callable[[Graph], RunGraph]] = {
    "openvino": _openvino,
    "onnxruntime": _onnxruntime,
    "aoti": _aoti,
}
"""By runtime."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters report their steps as warnings; a failure is raised all the same."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _reason(error: BaseException) -> str:
    """The first line of an exporter's error that names an operator, else its first line."""
    lines = [line.strip() for line in f"{error}\n{error.__cause__ or ''}".splitlines()]
    named = [line for line in lines if any(sign in line for sign in NAMES_OPERATOR)]
    return next(filter(None, named + lines), type(error).__name__)[:300]
