"""Labels of arms in reports, charts and pages: the method, how much it reduces, and the parameters
that differ from defaults.
"""

import json
from collections.abc import Mapping
from typing import Any

from sweeps.model.identity import canonical
from sweeps.model.job import Arm
from workers import methods


def params_label(method: str, params: str | None, *, without: str = "") -> str:
    """The label of a method and its parameters as the views have them (canonical JSON): `topk
    keep_rate=0.7`.

    Steps of a stack are joined by ` + `; in brackets follow overrides of the condition: `a k=500 +
    b p=0.5 [kv_cache="virtual"]`. `without` leaves out one parameter, named as in the column
    `varied_parameter`: `keep_rate`, `budget.gmacs_ratio`, or `1.p` in the second step of a stack.
    """
    value = json.loads(params) if params else {}
    if not isinstance(value, list):
        return _step(method, value, without)
    named, overrides = [], []
    for place, step in enumerate(value):
        omitted = without.removeprefix(f"{place}.") if without.startswith(f"{place}.") else ""
        params_of_step = {key: param for key, param in step.items() if key != "method"}
        if "method" in step:
            named.append(_step(step["method"], params_of_step, omitted))
        else:
            overrides += _params("", params_of_step)
    return " + ".join(named) + (f" [{' '.join(overrides)}]" if overrides else "")


def arm_label(arm: Arm) -> str:
    """The label of an arm of a job; `dense` for the unmodified model."""
    name = " + ".join(_step(step.method, step.params) for step in arm.stack) or "dense"
    overrides = {key: value for key, value in arm.overrides if value is not None}
    if arm.replicate:
        overrides["replicate"] = arm.replicate
    return f"{name} [{' '.join(_params('', overrides))}]" if overrides else name


def _step(method: str, params: Mapping[str, Any], without: str = "") -> str:
    # of an arm from a file the name of the file is enough
    return " ".join([method.rpartition("/")[2], *_params(method, params, without)])


def _params(method: str, params: Mapping[str, Any], without: str = "") -> list[str]:
    defaults = {}
    if (found := methods.all_methods().get(method)) is not None:
        construct = found.Params.model_construct()
        defaults = construct.model_dump(
            mode="json", exclude=set(found.Params.amounts), warnings=False
        )
    return [
        f"{key}={canonical(value)}"
        for key, value in params.items()
        if value is not None
        and key != without.partition(".")[0]
        and not (key in defaults and defaults[key] == value)
    ]
