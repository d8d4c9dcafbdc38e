"""Bad input and failures of language sweeps: an error of the file, or a row with the reason while
the rest is measured.
"""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster.cluster import Cluster
from orchestrator.plan import planning
from sweeps.language.yaml_reader import SweepError
from tests.orchestrator.commands import ROOT, breakeven
from tests.orchestrator.conftest import Store
from tests.workers.llm_zoo import saved_from_zoo
from tests.workers.saved_llm import TEXTS, TOKENS, changed, saved
from workers.data.tokenization import FastTokenizer, train_tokenizer
from workers.vocabulary.build import VocabularyRecipe, build_vocabulary

pytestmark = pytest.mark.ray

SWEEP = """\
schema: 1
name: failures
question: Is it reported, and does the sweep go on?
defaults: {{model: {model}, data: {data}, device: cpu, threads: 1, prompt_tokens: {prompt}, new_tokens: {new}}}
methods:
{methods}
jobs:
  generation: {{pairs: {{min: 2, max: 2}}, budget: 60s, timeout: {timeout}}}
  {quality}
"""
VIRTUAL = "{method: dense, kv_cache: virtual}"
SPARSE = "{method: topk_activation, sparsity: 0.5}"
WIDE = {
    "num_hidden_layers": 1,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "max_position_embeddings": 8192,
}
"""Enough heads that the attention of a prompt of 6000 tokens, where it is formed, is 2.3 GB: too
much for these workers."""


def sweep(
    *methods: str,
    model: str = "./model",
    data: str = "topics",
    prompt: int = 16,
    new: int = 4,
    **more: str,
) -> str:
    """A sweep file."""
    listed = "\n".join(f"  - {method}" for method in methods)
    values = {"timeout": "1m", "quality": "quality: {characters: 400, timeout: 1m}", **more}
    return SWEEP.format(model=model, data=data, prompt=prompt, new=new, methods=listed, **values)


def without_weights(folder: Path) -> None:
    (folder / "model" / "model.safetensors").unlink()


def with_a_pickle(folder: Path) -> None:
    (folder / "model" / "model.safetensors").rename(folder / "model" / "pytorch_model.bin")


def with_half_the_weights(folder: Path) -> None:
    file = folder / "model" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])


def of_another_kind(folder: Path) -> None:
    changed(folder / "model" / "config.json", model_type="mamba")


def without_merges(folder: Path) -> None:
    file = folder / "model" / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["model"]["merges"] = []
    file.write_text(json.dumps(tokenizer))


def with_texts(folder: Path) -> None:
    (folder / "empty.txt").write_text("")
    (folder / "binary.txt").write_bytes(bytes(range(256)))
    (folder / "brief.txt").write_text(
        "\n\n".join(f"Paragraph {n} is short, and appears once." for n in range(12))
    )
    (folder / "ngrams.pkl").write_bytes(b"")


def with_vocabularies(folder: Path) -> None:
    for name, size in (("own", TOKENS), ("other", TOKENS - 20)):
        build_vocabulary(
            FastTokenizer(train_tokenizer(TEXTS, size)), TEXTS, VocabularyRecipe(ngrams=20)
        ).write(folder / f"{name}.json")
    (folder / "damaged.json").write_text((folder / "own.json").read_text()[:100])


def ngrams(file: str) -> str:
    return f"{{method: adaptivocab, ngrams: 20, file: ./{file}}}"


@pytest.mark.parametrize(
    ("prepare", "text", "expected"),
    [
        (
            without_weights,
            sweep(VIRTUAL),
            (4, "./model holds no weights (*.safetensors); write what `save_pretrained`"),
        ),
        (
            with_a_pickle,
            sweep(VIRTUAL),
            (4, "save its pickled weights again as safetensors: nothing is unpickled here"),
        ),
        (
            with_half_the_weights,
            sweep(VIRTUAL),
            (4, "is damaged, or only a part of the file that was written"),
        ),
        (
            of_another_kind,
            sweep(VIRTUAL),
            (4, "model_type 'mamba' is not supported: it has no keys and values"),
        ),
        (
            None,
            sweep(VIRTUAL, model="./nowhere"),
            (4, "there is no folder ./nowhere; a relative one counts from the current folder"),
        ),
        (
            None,
            sweep("{method: larosa, sparsity: 1.0}"),
            (6, "methods[0].sparsity: input should be less than 1, not 1.0"),
        ),
        (
            None,
            sweep("{method: larosa, sparsity: -0.1}"),
            (6, "sparsity: input should be greater than or equal to 0, not -0.1"),
        ),
        (
            None,
            sweep("{method: teal, sparsity: [0.5, 1.5]}"),
            (6, "methods[0].sparsity[1]: input should be less than 1, not 1.5"),
        ),
        (
            None,
            sweep(VIRTUAL, prompt=250, new=10),
            (4, "250 tokens and 10 new ones are more than the 256 positions of ./model"),
        ),
        (
            None,
            sweep("{method: topk, keep_rate: 0.5}"),
            (6, "topk is for vision models, and this sweep is about language models"),
        ),
        (
            None,
            sweep("{method: larosa, sparsity: 0.5}", model="deit_tiny_patch16_224"),
            (6, "larosa is for language models, and this sweep is about vision models"),
        ),
        (
            with_texts,
            sweep(VIRTUAL, data="'text:./nowhere'"),
            (4, "text:nowhere: there is no such file or folder"),
        ),
        (
            with_texts,
            sweep(VIRTUAL, data="'text:./empty.txt'"),
            (4, "too short to be split into a training and a held-out part"),
        ),
        (
            with_texts,
            sweep(VIRTUAL, data="'text:./binary.txt'"),
            (4, "binary.txt is not text in UTF-8"),
        ),
        (
            with_texts,
            sweep(ngrams("ngrams.pkl")),
            (6, "a pickle can run any code when it is opened, so it is not read; convert"),
        ),
        (
            None,
            sweep(ngrams("nowhere.json")),
            (6, "adaptivocab.file cannot be used: ./nowhere.json: No such file or directory"),
        ),
    ],
)
def test_what_no_machine_could_run_is_an_error_of_the_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[Path], None] | None,
    text: str,
    expected: tuple[int, str],
) -> None:
    """The error names file, line and key, states what is wrong in a line, and comes before anything
    is started.
    """
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "model")
    if prepare:
        prepare(tmp_path)
    if "deit" in text:  # a vision model has none of these
        text = text.replace(", data: topics", "").replace(
            ", prompt_tokens: 16, new_tokens: 4", ", image_size: 224"
        )
        text = text.partition("jobs:")[0]
    with pytest.raises(SweepError) as caught:
        planning.load_sweep("failures.yaml", auto="cpu", text=text)
    line, message = expected
    assert caught.value.line == line
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plan_of_any_architecture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of an architecture that is not described is planned without torch; a quantised one
    is refused in a line, exit 2.
    """
    monkeypatch.chdir(tmp_path)
    saved_from_zoo(tmp_path / "model", "deepseek_v3")
    (tmp_path / "sweep.yaml").write_text(sweep(VIRTUAL))
    code = (
        "import sys\nfrom orchestrator.cli import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    code = ended.code\n"
        "print(code, sorted({'torch', 'transformers', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "plan", "sweep.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BREAKEVEN_DB": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] in ("0 []", "None []"), done.stderr
    assert "counted when run" in done.stdout
    changed(tmp_path / "model" / "config.json", quantization_config={"quant_method": "gptq"})
    refused = breakeven("plan", "sweep.yaml", folder=tmp_path)
    assert refused.returncode == 2
    assert (
        "sweep.yaml:4: defaults.model: ./model: its weights are quantised (gptq), which is not"
        " supported" in refused.stderr
    )
    assert refused.stderr.count("\n") == 1


def dispatched(
    store: Store, cluster: Cluster, text: str
) -> dict[tuple[str, str, str], dict[str, Any]]:
    """What the view `failures` holds after the sweep ran, by kind, method and reason."""
    expansion = planning.load_sweep("failures.yaml", auto="cpu", text=text)
    summary, _ = store.dispatch(store.submit(expansion.jobs), cluster, max_attempts=1)
    assert not summary.unanswered
    assert set(store.states()) == {"done"}
    rows = store.table("SELECT * FROM failures").to_dict("records")
    return {(row["kind"], row["method"], row["params"]): row for row in rows}


@pytest.mark.slow
def test_what_one_arm_cannot_run_is_a_row_and_the_rest_is_measured(
    store: Store, cluster: Cluster, tmp_path: Path
) -> None:
    """A calibration text that is too short, other or damaged n-grams, and a prefill beyond the
    memory leave the others alone.
    """
    saved(tmp_path / "model", **WIDE)
    with_texts(tmp_path)
    with_vocabularies(tmp_path)
    text = sweep(
        "{method: dense, attention: eager}",
        "{method: larosa, sparsity: 0.5, data: 'text:./brief.txt'}",
        *map(ngrams, ("own.json", "other.json", "damaged.json")),
        prompt=6000,
    ).replace("./", f"{tmp_path}/")
    found = dispatched(store, cluster, text)
    reasons = {(kind, method, row["reason"]) for (kind, method, _), row in found.items()}
    assert reasons == {
        ("generation", "dense", "out_of_memory"),
        *(
            (kind, method, "unsupported")
            for kind in ("generation", "quality")
            for method in ("larosa", "adaptivocab")
        ),
    }
    messages = " | ".join(row["message"] for row in found.values())
    for message in (
        (
            "while preparing dense [attention=eager]: memory ran out at a request for 2304000000"
            " bytes more; a smaller batch"
        ),
        "calibration: the text text:",
        "give a longer one, or a smaller calibration_tokens",
        "the vocabulary was made for another tokenizer (",
        "damaged.json: is no vocabulary (breakeven-vocabulary-1): the file: Invalid JSON",
    ):
        assert message in messages
    measured = store.table(
        "SELECT kind, method FROM speedup UNION SELECT kind, method FROM quality ORDER BY 1, 2"
    )
    assert [*map(tuple, measured.to_numpy())] == [
        ("generation", "adaptivocab"),
        ("quality", "adaptivocab"),
        ("quality", "dense"),
    ]


@pytest.mark.slow
def test_a_language_sweep_runs_from_one_end_to_the_other(tmp_path: Path) -> None:
    """`run` measures speed and quality through Ray, answers for a model without merges in rows, and
    SQL joins the two kinds.
    """
    saved(tmp_path / "model", max_position_embeddings=1024)
    saved(tmp_path / "broken" / "model")
    without_merges(tmp_path / "broken")
    text = sweep(SPARSE).replace("model: ./model, ", "")
    text = text.replace("methods:", "axes: {model: [./model, ./broken/model]}\nmethods:")
    (tmp_path / "sweep.yaml").write_text(text)
    done = breakeven("run", "sweep.yaml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", each arm" in breakeven("report", "failures", "--detail", folder=tmp_path).stdout
    joined = """SELECT s.metric, s.speedup > 0 AS fast, q.characters FROM speedup AS s JOIN quality AS q
      ON q.arm_id = s.arm_id AND q.model = s.model AND q.weights = s.weights ORDER BY s.metric"""
    rows = list(
        csv.DictReader(
            io.StringIO(breakeven("query", joined, "--format", "csv", folder=tmp_path).stdout)
        )
    )
    assert [(row["metric"], row["fast"]) for row in rows] == [
        ("time_per_char", "1"),
        ("tpot", "1"),
        ("ttft", "1"),
    ]
    assert all(int(row["characters"]) > 300 for row in rows)
    failures = "SELECT kind, model, reason, message FROM failures ORDER BY kind"
    failed = list(
        csv.DictReader(
            io.StringIO(breakeven("query", failures, "--format", "csv", folder=tmp_path).stdout)
        )
    )
    assert [(row["kind"], row["model"], row["reason"]) for row in failed] == [
        (kind, "./broken/model", "unsupported") for kind in ("generation", "quality")
    ]
    assert all("the tokenizer has no merges and would split" in row["message"] for row in failed)
