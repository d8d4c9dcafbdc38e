"""Vision models exported as one graph of one shape and run by another engine: OpenVINO, ONNX
Runtime, or a library compiled ahead of time (AOTInductor).

`torch.export` gives one graph or fails, and no engine leaves an operator to torch: what runs, runs
whole. Every engine has as many threads as torch, and none of them spins after a forward, which
would slow whatever runs next. Before the first result counts, logits are compared with those of the
eager model (`check_parity`).
"""

import copy
import importlib
import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from workers.errors import Unsupported
from workers.models.runtime import OneGraph

RunGraph = Callable[[Tensor], Tensor]
Engine = Callable[[ExportedProgram, Tensor, bool], RunGraph]
"""From an exported model, an example of its input, and whether attention may be fused."""

INPUTS = 3
"""Inputs on which logits are compared."""
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
    """The eager model behind another engine, made on the first call and for its shape."""

    def __init__(self, eager: nn.Module, runtime: str, *, fused: bool = True) -> None:
        """`fused` is false where the engine must compute attention in its parts."""
        super().__init__(eager)
        self.runtime, self.fused = runtime, fused
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
            self.difference = check_parity(self.eager, made, x_BCHW, self.runtime)
            self.forward_exported = made
        return self.forward_exported(x_BCHW)

    def _make(self, x_BCHW: Tensor) -> RunGraph:
        try:
            with torch.inference_mode(mode=False), torch.no_grad(), _quiet():
                # a tensor of inference mode cannot be an example of an export
                example = x_BCHW.clone()
                program = torch.export.export(self.eager, (example,))
                return ENGINES[self.runtime](program, example, self.fused)
        except Unsupported:
            raise
        except Exception as error:
            reason = f"runtime {self.runtime} cannot run this model: {_reason(error)}"
            raise Unsupported(reason) from error


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


def _openvino(program: ExportedProgram, example: Tensor, fused: bool) -> RunGraph:
    openvino = _library("openvino")
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "INFERENCE_PRECISION_HINT": "bf16" if example.dtype == torch.bfloat16 else "f32",
        "ENABLE_CPU_PINNING": False,
    }
    if not fused:
        options["SNIPPETS_MODE"] = "DISABLE"
    # what `openvino.convert_model` does, which also sends its maker a report over the network
    frontend = importlib.import_module("openvino.frontend").FrontEndManager()
    pytorch = frontend.load_by_framework("pytorch")
    decoders = importlib.import_module("openvino.frontend.pytorch.fx_decoder")
    decoded = decoders.TorchFXPythonDecoder.from_exported_program(program)
    model = pytorch.convert(pytorch.load(decoded))
    model.reshape(list(example.shape))
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

    return forward_bfloat16 if example.dtype == torch.bfloat16 else forward


def _onnxruntime(program: ExportedProgram, example: Tensor, fused: bool) -> RunGraph:  # noqa: ARG001 - of every engine
    onnxruntime = _library("onnxruntime")
    _library("onnxscript")  # which torch's exporter needs
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    graph = torch.onnx.export(program, (example,), dynamo=True, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        cast(torch.onnx.ONNXProgram, graph).save(str(path))
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def forward(x_BCHW: Tensor) -> Tensor:
        return torch.from_numpy(session.run(None, {name: x_BCHW.numpy()})[0])

    return forward


def _aoti(program: ExportedProgram, example: Tensor, fused: bool) -> RunGraph:  # noqa: ARG001 - of every engine
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    with tempfile.TemporaryDirectory() as folder:
        package = str(Path(folder) / "model.pt2")
        return cast(
            RunGraph, aoti_load_package(aoti_compile_and_package(program, package_path=package))
        )


ENGINES: dict[str, Engine] = {"openvino": _openvino, "onnxruntime": _onnxruntime, "aoti": _aoti}
"""By runtime."""


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unsupported(f"{name} is not installed: uv sync --extra runtimes") from error


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
