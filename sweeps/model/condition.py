"""Condition: the point of a sweep that all arms of a job share, and the fields of it that an arm
may override.
"""

from collections.abc import Mapping
from functools import cache, cached_property
from math import isfinite, sqrt
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PositiveInt

from sweeps.model.identity import FrozenModel, canonical
from sweeps.model.kinds import KINDS


def _declared(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; known are {', '.join(KINDS)}")
    return kind


Kind = Annotated[str, AfterValidator(_declared)]
"""Name of a kind of job, declared in `sweeps.model.kinds`."""
Device = Literal["cpu", "cuda"]
Dtype = Literal["float32", "bfloat16", "float16", "autocast-float16", "int8", "int4"]
"""Of weights and products; `int8` also quantises the input of each product of a vision model. In a
language model `int8` and `int4` are of the weights of linear layers, all else is bfloat16."""
QUANTISED: tuple[Dtype, ...] = ("int8", "int4")
Attention = Literal["sdpa", "eager", "triton"]
Runtime = Literal[
    "eager",
    "compile",
    "cudagraph",
    "compiled_graph",
    "openvino",
    "onnxruntime",
    "aoti",
    "llamacpp",
]
EXPORTED: Mapping[Runtime, tuple[Dtype, ...]] = {
    "openvino": ("float32", "bfloat16", "int8"),
    "onnxruntime": ("float32",),
    "aoti": ("float32", "bfloat16"),
}
"""Runtimes that run an exported graph of a vision model on a CPU, each with the dtypes that it
can run."""
INT8: Runtime = "openvino"
"""The one that runs vision models in int8, in jobs that are not timed too."""
UNCOMPILED: tuple[Runtime, ...] = ("eager", "cudagraph", "llamacpp")
"""Runtimes whose first call takes no time for compiling."""
LLAMA_CPP: tuple[Dtype, ...] = ("float32", "bfloat16", "int8", "int4")
"""Dtypes of weights that llama.cpp runs on a CPU; `int8` is Q8_0 there, `int4` Q4_0."""
KvCache = Literal["dynamic", "static", "virtual"]
Decoding = Literal["teacher_forcing", "greedy"]
Exclusive = Literal["device"]
WaitPolicy = Literal["passive", "active"]
Pinning = Literal["cores"]
InputValues = Literal["zeros"]
NAMED_WEIGHTS = ("random", "pretrained", "trained")
"""Weights that are no path of a file."""


class Rectangle(FrozenModel):
    """The size in pixels of images that are no squares."""

    height: PositiveInt
    width: PositiveInt

    def __str__(self) -> str:
        return f"{self.height}x{self.width}"


def image_shape(size: "ImageSize") -> tuple[int, int]:
    """Height and width in pixels."""
    return (size.height, size.width) if isinstance(size, Rectangle) else (size, size)


def square_side(size: "ImageSize") -> float:
    """Side in pixels of the square with as many pixels."""
    return sqrt(size.height * size.width) if isinstance(size, Rectangle) else size


def pixel_size(height: int, width: int) -> "ImageSize":
    """A number for a square, however it is written: it has one identity."""
    return height if height == width else Rectangle(height=height, width=width)


ImageSize = Annotated[
    Annotated[int, Field(gt=0)] | Rectangle,
    AfterValidator(lambda size: pixel_size(*image_shape(size))),
]
"""Pixels of an image: the side of a square, or height and width."""


def _sorted_numbers(values: Any) -> Any:
    """Names with numbers, from a mapping or pairs, by name; 64.0 is 64."""
    try:
        pairs = sorted(dict(values).items())
    except TypeError:
        raise ValueError(f"{values!r:.40} does not map names to numbers") from None
    for name, number in pairs:
        if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
            raise ValueError(f"{name} needs a number, not {number!r}")
    return tuple((name, int(number) if number % 1 == 0 else number) for name, number in pairs)


AxisValues = Annotated[
    tuple[tuple[str, int | float], ...],
    BeforeValidator(_sorted_numbers),
    PlainSerializer(dict, return_type=dict[str, int | float]),
]
"""Numbers by name, sorted and hashable; a mapping as JSON."""


class Condition(FrozenModel):
    """The point of the sweep that all arms of a job share; arms may override the fields named in
    `Overrides`.
    """

    model: str
    weights: str = "random"
    """`random`, `pretrained`, `trained` (on demand, see `workers/training`), or the path of a
    checkpoint file."""
    image_size: ImageSize | None = None
    """The input in pixels: the side of a square, or `{height, width}`; `None` for a language
    model."""
    batch_size: PositiveInt = 1
    device: Device = "cpu"
    threads: PositiveInt | None = None
    """Intra-op CPU threads; `None` means one per core that the process may use."""
    dtype: Dtype = "float32"
    attention: Attention = "sdpa"
    runtime: Runtime = "eager"
    seed: int = 0
    data: str | None = None
    """What accuracy is measured on (`digits`, `imagefolder:PATH`, `huggingface:PATH`), or the text
    that language models read (`docs`, `topics`, `text:PATH`)."""
    corruption: str | None = None
    """A corruption of the images, such as `gaussian_noise`: the 15 of ImageNet-C with its
    parameters (`frost` is drawn, not photographed), `gaussian_blur` and `speckle_noise`."""
    severity: int | None = Field(default=None, ge=1, le=5)
    prompt_tokens: PositiveInt | None = None
    """Length of the prompt in tokens of the model's own tokenizer; an arm with another one reads
    the same text."""
    new_tokens: PositiveInt | None = None
    """Length of what is generated, in the same tokens: an arm with another tokenizer generates as
    many characters."""
    kv_cache: KvCache | None = None
    decoding: Decoding | None = None
    """`teacher_forcing` feeds the text's own continuation, the same to every arm; `greedy` feeds
    the arm's own output."""
    exclusive: Exclusive | None = None
    """What a timing job has to itself: its node where nothing is written, with `device` one GPU and
    its share of the cores."""
    spare_cores: PositiveInt | None = None
    """Without `threads`: as many cores as this are left without a thread, so that each host has its
    own number of threads."""
    wait_policy: WaitPolicy | None = None
    """How threads wait for each other: `None` in a loop for some microseconds, then asleep;
    `passive` asleep at once; `active` in a loop that keeps their cores busy."""
    pinning: Pinning | None = None
    """`cores`: each thread stays on a core of its own; `None`: the system places them."""
    inputs: InputValues | None = None
    """How the values of timed images are drawn: `None` (written `normal`) from the normal
    distribution; `zeros` are all 0, which takes less power on a GPU."""
    values: AxisValues | None = None
    """Of own models: the numbers of axes with free names, which make the input."""
    x_axis: tuple[str, ...] | None = None
    """What the size of the work is called, `tokens` or one of `values`, then the others of them
    that vary along a curve."""

    def threads_on(self, cores: int) -> int:
        """The threads of a process that may use so many cores."""
        return self.threads or max(1, cores - (self.spare_cores or 0))

    @property
    def fixed_values(self) -> AxisValues | None:
        """Those of `values` that are the same along a curve."""
        along = self.x_axis or ()
        return tuple(pair for pair in self.values or () if pair[0] not in along) or None

    def without_size(self) -> "Condition":
        """What the points of a curve have in common."""
        sizes = {"image_size": None, "prompt_tokens": None, "values": self.fixed_values}
        return self.model_copy(update=sizes)

    @property
    def pixels(self) -> ImageSize:
        """`image_size` of a vision model. Raises `ValueError` for a language model, which has no
        image.
        """
        if self.image_size is None:
            raise ValueError(
                f"{self.model} has no image_size; a vision model's condition needs one"
            )
        return self.image_size

    def request_text(self, kind: Kind) -> str:
        """What a question of this kind depends on, as canonical JSON."""
        if kind not in self._request_texts:
            self._request_texts[kind] = canonical(
                self.model_dump(mode="json", include=set(condition_fields(kind)))
            )
        return self._request_texts[kind]

    @cached_property
    def _request_texts(self) -> dict[Kind, str]:
        return {}


@cache
def condition_fields(kind: Kind) -> tuple[str, ...]:
    """The condition fields that an answer of this kind depends on."""
    return tuple(name for name in Condition.model_fields if name not in KINDS[kind].independent_of)


class Overrides(FrozenModel):
    """Condition fields that one arm sets for itself; `None` keeps the condition's value."""

    dtype: Dtype | None = None
    attention: Attention | None = None
    runtime: Runtime | None = None
    image_size: ImageSize | None = None
    kv_cache: KvCache | None = None

    def without_repeats(self, condition: Condition) -> "Overrides":
        """The same overrides less those that only repeat what `condition` has already."""
        kept = {
            key: value
            for key, value in self
            if value is not None and value != getattr(condition, key)
        }
        return Overrides(**kept)
