# %% [markdown]
"""A server of a timm vision transformer that chooses for each batch what to run, by a policy that
Breakeven measured.

    uv run breakeven run sweeps/quickstart.yaml
    uv run breakeven export-policy policy.json
    uv run python examples/serve_timm.py policy.json

Requests are square images, and each batch holds images of one size. For each batch the policy names
the arm that was measured to be faster at so many tokens and such a batch, or the unmodified model:
where nothing was faster, and wherever nothing was measured.
"""

# %% The server
import sys
from collections import Counter
from itertools import product
from typing import Any

import torch

from sweeps.analysis.policy import Policy, PolicyChoice
from sweeps.geometry.vit_catalogue import networks
from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import Arm, Step
from workers.arms.budget import solve
from workers.arms.vision import build_vision
from workers.models.share_weights import DTYPES
from workers.models.vision import load_vision


class Server:
    """A model in memory, and beside it the arms that the policy chooses: they share its weights,
    and are made at first use.
    """

    def __init__(self, policy: Policy, condition: Condition) -> None:
        self.policy = policy
        self.condition = condition
        self.loaded = load_vision(condition)
        self.models: dict[tuple[str, int], Any] = {}
        self.log: Counter[tuple[str, str]] = Counter()

    def model(self, choice: PolicyChoice, size: int) -> Any:
        """The model of a choice for images of this size, which an arm may reduce first."""
        key = (choice.arm, size)
        if key not in self.models:
            condition = self.condition.model_copy(update={"image_size": size})
            arm = Arm(
                stack=tuple(Step(**step) for step in choice.stack),
                overrides=Overrides(**choice.overrides),
            )
            self.models[key] = build_vision(
                self.loaded, condition, solve(arm, self.loaded.network, size).arm
            )
        return self.models[key]

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of images, shape [batch, channels, size, size], in whatever batch and size they
        came.
        """
        batch, _, size, _ = images.shape
        choice = self.policy.choose(tokens=self.loaded.network.patch_tokens(size), batch=batch)
        self.log[choice.arm, choice.reason] += 1
        own = choice.overrides.get("image_size", size)  # an arm of smaller images
        if own != size:
            images = torch.nn.functional.interpolate(
                images, (own, own), mode="bicubic", antialias=True
            )
        with torch.inference_mode():
            dtype = DTYPES[choice.overrides.get("dtype", self.condition.dtype)]
            logits: torch.Tensor = self.model(choice, size)(images.to(self.condition.device, dtype))
        return logits


def measured_condition(policy: Policy) -> Condition:
    """The condition of the policy's first rule: model, weights, precision and threads as they were
    measured.
    """
    known = policy.rules[0]["condition"]
    fields = {name: value for name, value in known.items() if name in Condition.model_fields}
    return Condition(**fields, image_size=networks()[known["model"]].image_size)


# %% Serve some batches: of measured sizes and batches, and one of a batch that was not measured
arguments = ["policy.json"] if "ipykernel" in sys.modules else [*sys.argv[1:], "policy.json"]
policy = Policy.load(arguments[0])
condition = measured_condition(policy)
policy = policy.restrict(model=condition.model, device=condition.device)
if condition.threads is not None:
    torch.set_num_threads(condition.threads)
server = Server(policy, condition)

sizes = [
    round(tokens**0.5) * server.loaded.network.patch
    for rule in policy.rules
    for tokens in rule["tokens"]
]
for batch, size in product(policy.batches, sorted(set(sizes))):
    logits = server(torch.randn(batch, server.loaded.network.channels, size, size))
server(torch.randn(max(policy.batches) + 1, server.loaded.network.channels, sizes[-1], sizes[-1]))

for (arm, reason), batches in sorted(server.log.items()):
    print(f"{batches} x {arm}: {reason}")
