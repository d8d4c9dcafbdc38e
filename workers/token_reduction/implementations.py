"""The choice between torch's operators and a compiled kernel with equal results, for methods that
have both; imports no torch.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from sweeps.model.condition import Condition

ImplementationField = Annotated[
    Literal["auto", "torch", "native"],
    Field(
        description=(
            "native: matching and merging by compiled code, float32 on a CPU only; torch: torch's"
            " operators; auto (the default): native where it can run, else torch"
        )
    ),
]


def choose(params: Any, condition: Condition) -> Any:
    """The parameters with `auto` replaced by the implementation that runs under an arm's own
    condition.
    """
    if params.implementation != "auto":
        return params
    native = (condition.device, condition.dtype, condition.runtime) == ("cpu", "float32", "eager")
    if native:
        from workers.models.cpp_build import missing_reason
        from workers.token_reduction.tome_cpp import TOME_CPP

        native = missing_reason(TOME_CPP) is None
    return params.model_copy(update={"implementation": "native" if native else "torch"})


def chosen_implementation(params: Any, condition: Condition) -> str:
    """The implementation that runs."""
    implementation: str = choose(params, condition).implementation
    return implementation


def eager_only(params: Any) -> str | None:
    """Why a compiled kernel can be neither compiled again nor captured."""
    return (
        "its compiled kernel is no operator of torch" if params.implementation == "native" else None
    )
