"""Tables of measurements in CSV files from anyone: columns are found by their names and units, numbers in either notation."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from sweeps.errors import UserError
from sweeps.references.measurement import BASELINE_WORDS, LatencyUnit, Measurement
from sweeps.suggestions import did_you_mean, unknown_word

FIELDS = tuple(name for name in Measurement.model_fields if name != "counters")
TEXTS = frozenset({"label", "method", "device", "model", "setting", "note"})
WHOLE_FIELDS = frozenset(
    {"image_size", "tokens", "tokens_final", "batch", "batch_counted", "kernels", "forwards", "stages", "images"}
)
MEASURED_FIELDS = (
    "latency_ms",
    "throughput",
    "kernel_ms",
    "device_ms",
    "kernels",
    "top1",
    "perplexity",
    "speedup",
    "latency_change",
    "memory_mb",
)
"""Fields of which a table must have one, else there is nothing to check."""
ALIASES: Mapping[str, str] = {
    **dict.fromkeys(("label", "arm", "name", "variant", "config", "configuration", "run_name"), "label"),
    **dict.fromkeys(("method",), "method"),
    **dict.fromkeys(("model", "network", "architecture", "arch"), "model"),
    **dict.fromkeys(("device", "gpu", "device_name", "hardware"), "device"),
    **dict.fromkeys(("setting", "dtype", "precision"), "setting"),
    **dict.fromkeys(("image_size", "img_size", "input_size", "resolution", "is", "infer_img_size"), "image_size"),
    **dict.fromkeys(("tokens", "num_tokens", "n_tokens", "seq_len", "sequence_length"), "tokens"),
    **dict.fromkeys(("tokens_final", "final_tokens", "tokens_left"), "tokens_final"),
    **dict.fromkeys(("batch", "batch_size", "bs", "infer_batch_size"), "batch"),
    **dict.fromkeys(("batch_counted",), "batch_counted"),
    **dict.fromkeys(("latency", "time", "step_time", "infer_step_time", "forward", "inference_time"), "latency_ms"),
    **dict.fromkeys(
        ("throughput", "tp", "fps", "ips", "samples_per_sec", "infer_samples_per_sec", "images_per_second"), "throughput"
    ),
    **dict.fromkeys(("img_s", "im_s", "images_s", "imgs_s", "img_per_s", "images_per_s", "samples_s"), "throughput"),
    **dict.fromkeys(("gmacs", "macs", "flops", "gflops", "infer_gmacs"), "gmacs"),
    **dict.fromkeys(("kernel", "kernel_time", "gpu_time", "device_time", "cuda_time"), "kernel_ms"),
    **dict.fromkeys(("device_ms", "device_latency", "device_latency_ms"), "device_ms"),
    **dict.fromkeys(("kernels", "kernel_count", "launches", "num_kernels"), "kernels"),
    **dict.fromkeys(("forwards", "iterations", "iters"), "forwards"),
    **dict.fromkeys(("peak_gflops",), "peak_gflops"),
    **dict.fromkeys(("keep_rate", "keep_ratio", "keep"), "keep_rate"),
    **dict.fromkeys(("stages",), "stages"),
    **dict.fromkeys(("r",), "r"),
    **dict.fromkeys(("sparsity",), "sparsity"),
    **dict.fromkeys(("top1", "top_1", "acc", "acc1", "accuracy", "acc_1"), "top1"),
    **dict.fromkeys(("images", "num_images", "n_images"), "images"),
    **dict.fromkeys(("perplexity", "ppl"), "perplexity"),
    **dict.fromkeys(("speedup", "speed_up"), "speedup"),
    **dict.fromkeys(("latency_change", "latency_delta"), "latency_change"),
    **dict.fromkeys(("memory", "max_memory", "peak_memory"), "memory_mb"),
    **dict.fromkeys(("noise", "cv", "rel_std"), "noise"),
    **dict.fromkeys(("note", "notes", "comment"), "note"),
}
"""Names of columns in papers and of tools, and what they are."""
UNITS_OF: Mapping[str, Mapping[str, float]] = {
    "latency_ms": {"ms": 1, "s": 1e3, "sec": 1e3, "seconds": 1e3, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ns": 1e-6},
    "kernel_ms": {"ms": 1, "s": 1e3, "sec": 1e3, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ns": 1e-6},
    "device_ms": {"ms": 1, "s": 1e3, "sec": 1e3, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ns": 1e-6},
    "gmacs": {"g": 1, "gmacs": 1, "gflops": 1, "m": 1e-3, "mmacs": 1e-3, "mflops": 1e-3, "t": 1e3},
    "memory_mb": {"mb": 1, "mib": 1, "gb": 1e3, "gib": 1024},
    "throughput": dict.fromkeys(("img/s", "im/s", "imgs/s", "images/s", "samples/s", "tokens/s", "/s", "1/s", "fps"), 1),
}
"""Units by field, and how many of the field's own each is."""
PER_IMAGE = re.compile(r"(ms|s|us|µs)\s*(/|per)\s*(im|img|image|images)\b|per[-_ ]image", re.IGNORECASE)
PER_BATCH = re.compile(r"(ms|s|us|µs)\s*(/|per)\s*(batch|step|forward)\b|per[-_ ]batch", re.IGNORECASE)
EMPTY_CELLS = frozenset({"", "-", "–", "—", "n/a", "na", "nan", "none", "null"})
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_AFTER = re.compile(r"\s*(%|x|×|ms|s|us|µs|μs|ns|img/s|im/s|images/s|gb|mb|gib|mib|g|gmacs|gflops|pp)$", re.IGNORECASE)


class CsvRows(NamedTuple):
    """The rows of a file, and how its columns were understood."""

    rows: tuple[Measurement, ...]
    columns: Mapping[str, str]
    """Field of each column that is one."""
    guessed: tuple[str, ...]
    """Columns that were understood by their names."""
    unknown: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What was assumed beside: decimal commas, units."""
    latency: LatencyUnit | None = None
    """What the header of the latency states that it is the time of."""


def read_csv_rows(path: Path, *, mapping: Mapping[str, str] | None = None, guess: bool = True) -> CsvRows:
    """The rows of a CSV file whose first line names the columns.

    mapping: the field of a column whose name does not show it, or shows another one; `guess`: understand the others by name.
    Raises `UserError` with file, line and column for what is not a table of measurements.
    """
    lines = _lines(path)
    header, delimiter = lines[0][1], lines[0][2]
    columns, guessed, unknown = _columns(path, header, mapping or {}, [cells for _, cells, _ in lines[1:]], guess=guess)
    comma = delimiter != "," and _decimal_commas(cells for _, cells, _ in lines[1:])
    notes = ["commas in numbers are decimal points"] if comma else []
    notes += [
        f"{name!r} is read as GMACs, as papers count FLOPs"
        for name in columns
        if columns[name] == "gmacs" and "flop" in name.lower()
    ]
    rows = []
    for line, cells, _ in lines[1:]:
        if len(cells) != len(header):
            raise UserError(
                f"{path}:{line}: has {len(cells)} cells, the header has {len(header)}; quote cells that hold {delimiter!r}"
            )
        values = {}
        for name, cell in zip(header, cells, strict=True):
            if name in columns and cell.strip().lower() not in EMPTY_CELLS:
                values[columns[name]] = _value(cell.strip(), columns[name], name, comma=comma, where=f"{path}:{line}")
        rows.append(_measurement(values, f"{path}:{line}"))
    if not any(getattr(row, field) is not None for row in rows for field in MEASURED_FIELDS):
        raise UserError(
            f"{path}: no column is a measurement ({', '.join(MEASURED_FIELDS)}); its columns are {', '.join(header)}; "
            "name one with --map COLUMN=FIELD"
        )
    return CsvRows(tuple(rows), columns, tuple(guessed), tuple(unknown), tuple(notes), _latency_unit(columns))


def _lines(path: Path) -> list[tuple[int, list[str], str]]:
    """Number, cells and delimiter of each line that is not empty, the header first."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except IsADirectoryError:
        raise UserError(f"{path} is a folder; name a CSV file") from None
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text; save it as CSV in UTF-8") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    first = next((line for line in text.splitlines() if line.strip()), None)
    if first is None or "\0" in text:
        raise UserError(
            f"{path} is {'empty' if first is None else 'no text'}; a table of measurements has a line of names, then one per row"
        )
    delimiter = max(",;\t|", key=first.count)
    reader = csv.reader(StringIO(text), delimiter=delimiter, skipinitialspace=True)
    try:
        found = [(reader.line_num, cells, delimiter) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: is no CSV: {error}") from None
    if len(found) < 2:
        raise UserError(f"{path} has no rows below its header")
    line, header, _ = found[0]
    names = [name.strip() for name in header]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UserError(f"{path}:{line}: the column {sorted(twice)[0]!r} stands there twice")
    if all(_NUMBER.fullmatch(name) for name in names):
        raise UserError(f"{path}:{line}: the first line holds numbers; it must name the columns")
    return [(line, names, delimiter), *found[1:]]


def _columns(
    path: Path, header: Sequence[str], mapping: Mapping[str, str], rows: Sequence[Sequence[str]], *, guess: bool
) -> tuple[dict[str, str], list[str], list[str]]:
    """Field of each column; the columns that were guessed; those that are no field."""
    for column, wanted in mapping.items():
        if column not in header:
            raise UserError(f"{path}: {unknown_word('column', column, list(header))}")
        if wanted not in FIELDS:
            raise UserError(f"{path}: {unknown_word('field', wanted, list(FIELDS))}")
    found, guessed, unknown = dict(mapping), [], []
    for name in header:
        if name in found:
            continue
        field = ALIASES.get(_plain_name(name)) if guess else None
        if field == "model" and "label" not in found.values() and _holds_arms(name, header, rows):
            field = "label"
        if field is None or field in found.values():
            unknown.append(name)
        else:
            found[name] = field
            guessed.append(name)
    twice = {field for field in found.values() if list(found.values()).count(field) > 1}
    if twice:
        both = " and ".join(repr(name) for name in found if found[name] in twice)
        raise UserError(f"{path}: the columns {both} are both mapped to {sorted(twice)[0]!r}")
    return found, guessed, unknown


def _holds_arms(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a column called model distinguishes a model with and without a method."""
    place = header.index(name)
    return any(len(cells) > place and cells[place].strip().lower() in BASELINE_WORDS for cells in rows)


def _plain_name(header: str) -> str:
    """`latency` of `Latency (ms)`, `latency_ms` and `latency [ms/image]`."""
    name = re.sub(r"[\[(].*?[\])]", "", header).strip().lower()
    name = re.sub(r"[^a-z0-9]+", "_", name.replace("/", "_")).strip("_")
    unit = name.rpartition("_")[2]
    known = {short for units in UNITS_OF.values() for short in units}
    return name if name in ALIASES or unit not in known else name.rpartition("_")[0]


def _unit(header: str, field: str) -> float:
    """How many of the field's own unit a number below a header is, by the unit in it."""
    inside = re.findall(r"[\[(](.*?)[\])]", header)
    words = [re.split(r"\s*(?:/|per)\s*(?:im|batch|step|forward)", text.strip().lower())[0] for text in inside]
    words.append(header.strip().lower().rpartition("_")[2])
    units = UNITS_OF.get(field, {})
    return next((units[word] for word in words if word in units), 1.0)


def _latency_unit(columns: Mapping[str, str]) -> LatencyUnit | None:
    name = next((name for name in columns if columns[name] == "latency_ms"), "")
    return "per_image" if PER_IMAGE.search(name) else "per_batch" if PER_BATCH.search(name) else None


def _decimal_commas(rows: Iterable[Sequence[str]]) -> bool:
    """Whether commas in numbers are decimal points: no number has a point, and one with a comma is no group of thousands."""
    cells = [_AFTER.sub("", cell.strip()) for row in rows for cell in row]
    numbers = [cell for cell in cells if re.fullmatch(r"[-+]?[\d.,]+", cell)]
    if any("." in cell for cell in numbers):
        return False
    return any(re.fullmatch(r"[-+]?\d+,\d+", cell) for cell in numbers)


def _value(cell: str, field: str, header: str, *, comma: bool, where: str) -> Any:
    """What a cell states in the field's own unit; a unit behind a number goes before that of the header."""
    if field in TEXTS:
        return cell
    behind = _AFTER.search(cell)
    text = _AFTER.sub("", cell)
    if comma:
        text = text.replace(",", ".")
    elif re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text):
        raise UserError(f"{where}: {header}: {cell!r} is no number; leave the cell empty where nothing was measured")
    own = UNITS_OF.get(field, {}).get(behind[1].lower()) if behind else None
    number = float(text) * (_unit(header, field) if own is None else own)
    if field in WHOLE_FIELDS:
        if number != int(number):
            raise UserError(f"{where}: {header}: {cell!r} is no whole number, as {field} must be")
        return int(number)
    return number


def _measurement(values: Mapping[str, Any], where: str) -> Measurement:
    try:
        return Measurement.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = first["msg"][0].lower() + first["msg"][1:]
        raise UserError(f"{where}: {first['loc'][0] if first['loc'] else 'row'}: {problem}, not {first['input']!r}") from None


def parse_mapping(pairs: Iterable[str]) -> dict[str, str]:
    """`["tp=throughput"]` as a mapping. Raises `UserError` for what is no pair of a column and a field."""
    found = {}
    for pair in pairs:
        column, equals, field = pair.rpartition("=")
        if not equals or not column:
            raise UserError(f"--map {pair}: write COLUMN=FIELD, such as tp=throughput")
        if field not in FIELDS:
            raise UserError(f"--map {pair}: unknown field {field!r}{did_you_mean(field, FIELDS)}")
        found[column] = field
    return found
