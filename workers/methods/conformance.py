"""What every vision method keeps to, checked on small models: for the shipped methods by the tests,
for files of a user by `breakeven methods --check`.

A check raises `AssertionError` with what the method does not keep to.
"""

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from sweeps.model.condition import Condition
from sweeps.model.method import Network, modality_of
from workers.methods import NotImportable, error_line, load_methods
from workers.models.runtime import Compiled, trace
from workers.models.share_weights import clone_shared
from workers.models.vision import VisionModel, load_vision

MODELS = ("test_vit", "test_vit2")
"""Small models of timm on which a user's files are checked: with a class token, and with a register
instead."""
SIZE = 80
"""Their image size in pixels: 25 patches, an odd number."""


class Case(NamedTuple):
    """A method with parameters on a model with at least four blocks, in evaluation mode."""

    method: Any
    params: Any
    model: Any
    network: Network

    def applied(self) -> Any:
        return self.method.apply(self.model, self.params)

    def promised(self) -> tuple[Any, int]:
        """The tokens of each block, and the MACs of the method."""
        given = self.params, self.network, self.model.patch_embed.img_size[0]
        return self.method.tokens(*given), self.method.macs(*given)

    def images(self, batch: int = 2) -> Tensor:
        """Images [B, 3, H, W], always the same."""
        generator = torch.Generator().manual_seed(2)
        return torch.randn(batch, 3, *self.model.patch_embed.img_size, generator=generator)


def check_tokens(case: Case) -> None:
    """Promised tokens of each block are those of its tensors; a patch token is always left."""
    seen, (promised, _) = trace(case.applied(), case.images()), case.promised()
    both = [*map(tuple, promised)], [*map(tuple, seen.blocks)]
    assert seen.blocks == promised, "tokens() promises {}, and the blocks see {}".format(*both)
    assert seen.final == promised[-1].mlp > case.network.prefix_tokens, f"{seen.final} tokens left"
    assert seen.batch == 2, f"of 2 images the first block sees {seen.batch}"


def check_images(case: Case) -> None:
    """A batch gives what its images give; the given model stays and shares its weights."""
    x_BCHW = case.images()
    before, weights = case.model(x_BCHW), _addresses(case.model)
    applied = case.applied()
    together = applied(x_BCHW)
    alone = torch.cat([applied(image[None]) for image in x_BCHW])
    assert_close(together, alone, rtol=1e-4, atol=1e-5)
    assert torch.equal(applied(x_BCHW), together), "the second forward gives other logits"
    assert torch.equal(case.model(x_BCHW), before), "apply() changes the given model"
    assert weights == _addresses(case.model) <= _addresses(applied), "weights are not shared"


def _addresses(model: nn.Module) -> set[int]:
    return {value.data_ptr() for value in model.parameters()}


def check_macs(case: Case) -> None:
    """Network and method together are what an independent counter finds, to 0.1 %.

    It counts eager attention, which has formed the row of the class token already.
    """
    model, network = clone_shared(case.model), case.network
    for part in model.modules():
        if hasattr(part, "fused_attn"):
            part.fused_attn = False
    with FlopCounterMode(display=False) as counter:
        case._replace(model=model).applied()(case.images(1))
    counted, (tokens, own) = counter.get_total_flops() / 2, case.promised()
    analytic = network.macs(model.patch_embed.img_size[0], tokens) + own
    dropping = sum(block.attention for block in tokens if block.mlp < block.attention)
    row = min(own, dropping * network.heads * network.head_dim)
    exact = any(abs(counted / macs - 1) < 1e-3 for macs in (analytic, analytic - row))
    assert exact, f"{counted:.0f} MACs run, tokens() and macs() give {analytic}"


def check_neutral(case: Case) -> None:
    """With these parameters, `NEUTRAL`, nothing changes."""
    x_BCHW, size = case.images(), case.model.patch_embed.img_size[0]
    assert_close(case.applied()(x_BCHW), case.model(x_BCHW), rtol=0, atol=1e-5)
    assert case.promised() == (case.network.dense_tokens(size), 0), "tokens() or macs() differ"


def blocks_of(model: nn.Module) -> Any:
    """The blocks of a transformer, whatever is wrapped around it."""
    return next(part.blocks for part in model.modules() if hasattr(part, "blocks"))


def check_prefix(case: Case) -> None:
    """Each prefix token enters every block nearest to itself in the unmodified model."""
    index_P = torch.arange(case.network.prefix_tokens)

    def inputs(model: nn.Module) -> list[Tensor]:
        seen: list[Tensor] = []
        for block in blocks_of(model):
            block.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
        model(case.images())
        return seen

    for own, dense in zip(inputs(case.applied()), inputs(clone_shared(case.model)), strict=True):
        nearest_BP = torch.cdist(own[:, : len(index_P)], dense).argmin(-1)
        assert (nearest_BP == index_P).all(), "prefix tokens do not stay first"


def check_graph(case: Case) -> None:
    """One graph for torch.compile and the same logits, unless `eager_only` gives a reason."""
    if case.params.eager_only(Condition(model=case.network.name, runtime="compile")) is None:
        applied, x_BCHW = case.applied(), case.images()
        compiled = Compiled(applied, backend="eager")
        assert_close(compiled(x_BCHW), applied(x_BCHW), rtol=1e-5, atol=1e-6)


EACH = (check_tokens, check_images, check_macs)
"""Checks of every example of a method."""
FIRST = (check_prefix, check_graph)
"""Checks of its first example."""


def check_folder(folder: Path) -> dict[str, dict[str, str]]:
    """By method file of a folder and by check the first error as one line, empty where there is
    none.

    The models are `MODELS`, the parameters `EXAMPLES` or else the defaults. Of methods for language
    models only the parts are checked. Torch keeps the one thread that this needs.
    """
    torch.set_num_threads(1)  # tensors this small gain nothing from more
    methods, problems = load_methods(str(folder))
    results = {
        name: {"import" if isinstance(problem, NotImportable) else "parts": str(problem)}
        for name, problem in problems.items()
    }
    models = [load_vision(Condition(model=name, image_size=SIZE)) for name in MODELS]
    for name, method in methods.items():
        if Path(getattr(method, "__file__", "")).parent == folder:
            results[name] = {"parts": ""}
            for model in models if modality_of(method) == "vision" else ():
                with torch.inference_mode():
                    _check_vision(method, model, results[name])
    return results


def _check_vision(method: Any, loaded: VisionModel, results: dict[str, str]) -> None:
    examples = getattr(method, "EXAMPLES", None) or (method.Params(),)
    cases = [*product(examples, EACH), *product(examples[:1], FIRST)]
    if hasattr(method, "NEUTRAL"):
        cases.append((method.NEUTRAL, check_neutral))
    for params, check in cases:
        name = check.__name__.removeprefix("check_")
        try:
            if method.refuses(params, loaded.network) is None:
                results.setdefault(name, "")
                check(Case(method, params, loaded.model, loaded.network))
        except Exception as error:  # whatever a user's file raises
            where = f"{name} of {params} on {loaded.network.name}"
            results[name] = results.get(name) or f"{where}: {error_line(error)}"
