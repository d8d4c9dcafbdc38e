"""Bad input and failures of language sweeps: an error of the file, or a row with the reason while
the rest is measured.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster.cluster import Cluster
from orchestrator.plan import planning
from sweeps.language.yaml_reader import SweepError
from tests.orchestrator.conftest import Store
from tests.workers.saved_llm import TEXTS, TOKENS, saved
from workers.data.tokenization import FastTokenizer, train_tokenizer
from workers.vocabulary.build import VocabularyRecipe, build_vocabulary

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


def with_texts(folder: Path) -> None:
    (folder / "empty.txt").write_text("")
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
            with_texts,
            sweep(VIRTUAL, data="'text:./empty.txt'"),
            (4, "too short to be split into a training and a held-out part"),
        ),
        (
            with_texts,
            sweep(ngrams("ngrams.pkl")),
            (6, "a pickle can run any code when it is opened, so it is not read; convert"),
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
    with pytest.raises(SweepError) as caught:
        planning.load_sweep("failures.yaml", auto="cpu", text=text)
    line, message = expected
    assert caught.value.line == line
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


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
@pytest.mark.ray
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
