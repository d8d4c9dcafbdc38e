"""Sweeps of language models: fields, kinds and defaults, and a message for each wrong use."""

from pathlib import Path

from sweeps.model.condition import Condition, Overrides
from sweeps.model.job import DENSE, Arm, Comparison, Job, Pair, Protocol, Step
from tests.sweeps.llm_sweeps import BOTH, GENERATION, TINY, Skip, SkipParams, expand, refused


def test_defaults_are_spelled_out() -> None:
    """Cache, decoding and text are part of the condition even where the sweep does not name them,
    and the kind is generation.
    """
    expansion = expand(TINY + "methods: [skip]\n")
    assert [job.kind for job in expansion.jobs] == ["generation"]
    assert expansion.jobs[0].condition == GENERATION
    explicit = TINY.replace("16}", "16, kv_cache: dynamic, decoding: teacher_forcing, data: docs}")
    assert expand(explicit + "methods: [skip]\n").jobs == expansion.jobs


def test_each_kind_has_its_protocol() -> None:
    """A generation job takes pairs like latency, but more time; a quality job takes characters."""
    generation, quality = expand(
        TINY + "methods: [skip]\njobs: {generation: {pairs: {min: 31}}, quality: {characters: 9}}\n"
    ).jobs
    assert generation.protocol == Protocol(
        pairs_min=31, half_width=0.02, budget_s=300, timeout_s=1800
    )
    assert quality.protocol == Protocol(characters=9, timeout_s=1800)
    tasks = "{tasks: [piqa, ./a.yaml], documents: 20}"
    (requested,) = expand(
        f"defaults: {{model: tiny_lm}}\nmethods: [skip]\njobs: {{quality: {tasks}}}\n"
    ).jobs
    assert requested.protocol == Protocol(tasks=("piqa", "./a.yaml"), documents=20, timeout_s=1800)


def test_a_profile_of_a_language_model_is_requested_by_the_same_section() -> None:
    """`profile` stands for the kind of language models here, with text, cache and lengths in its
    condition.
    """
    jobs = expand(TINY + "methods: [skip]\njobs: {generation: {}, profile: {budget: 20s}}\n").jobs
    assert [(job.kind, job.protocol.budget_s) for job in jobs] == [
        ("generation", 300),
        ("generation_profile", 20),
    ]
    assert jobs[1].condition == GENERATION
    found = refused(TINY.replace(", new_tokens: 16", "") + "methods: [skip]\njobs: {profile: {}}\n")
    assert found.problem.startswith("is missing")


def test_integer_weights_run_on_a_cpu_and_without_methods_that_change_them() -> None:
    """Quality is asked for like time; what cannot run is refused with the reason."""
    arms = "methods: [{method: dense, dtype: [int8, int4]}]\nbaselines: [{dtype: bfloat16}]\n"
    kinds = {job.kind: job.arms[1:] for job in expand(TINY + arms + BOTH).jobs}
    wanted = tuple(Arm(overrides=Overrides(dtype=dtype)) for dtype in ("int8", "int4"))
    assert kinds == {"generation": wanted, "quality": wanted}
    on_gpu = TINY.replace("{model", "{device: cuda, model") + arms
    assert "dtype int8 of a language model runs on a CPU alone" in str(refused(on_gpu))
    changing = type("Params", (SkipParams,), {"changes_weights": True})
    methods = {"skip": type("Skip", (Skip,), {"Params": changing})()}
    text = TINY + "methods: [{method: skip, dtype: int8}]\n"
    assert expand(text).jobs
    assert "skip cannot run with dtype int8: it changes weights" in str(
        refused(text, methods=methods)
    )


def test_another_engine_runs_the_unmodified_llama() -> None:
    arm = "methods: [{method: dense, runtime: llamacpp}]\nbaselines: [{dtype: bfloat16}]\n"
    assert expand(TINY + arm).jobs[0].arms[1] == Arm(overrides=Overrides(runtime="llamacpp"))
    assert "and gpt2 is a gpt2" in str(refused(TINY.replace("tiny_lm", "gpt2") + arm))
    skipping = arm.replace("dense", "skip")
    assert "which runs the unmodified model" in str(refused(TINY + skipping))


def test_language_identities_are_pinned() -> None:
    """Golden identities of questions about language models, and of answers to them."""
    arm = Arm(
        stack=(Step(method="larosa", params={"sparsity": 0.5, "form": "absorbed"}),),
        overrides=Overrides(kv_cache="virtual"),
    )
    requested = Comparison(kind="generation", condition=GENERATION, baseline=DENSE, arm=arm)
    quality_condition = Condition(model="tiny_lm", weights="trained", data="topics")
    quality = Comparison(kind="quality", condition=quality_condition, baseline=DENSE, arm=arm)
    job = Job(
        kind="generation",
        condition=GENERATION,
        arms=(DENSE, arm),
        pairs=(Pair(0, 1),),
        content_hashes={"data": "ab"},
    )
    asked = ["b48746195dc2411d", "c3c1449e73bf4d50", "9e8727634ce86625"]
    assert [arm.arm_id, requested.question_id, quality.question_id] == asked
    answers = [requested.comparison_id(), quality.comparison_id({"recipe": "ab"}), job.job_id]
    assert answers == ["ea636e49ad6a7042", "34eeaf2b1fc8220a", "e52bb56132af97a5"]


def test_a_changed_text_makes_stale_what_is_made_from_it_and_nothing_else(tmp_path: Path) -> None:
    """The hash of a text or a file that a parameter names is part of the comparisons of that arm
    alone.
    """
    made = tmp_path / "made.json"
    arms = (
        f"[{{method: skip, data: topics}}, {{method: skip, file: {made}}}, {{method: skip,"
        " sparsity: 0.25}]"
    )
    sweep = f"{TINY}methods: {arms}\njobs: {{generation: {{}}}}\n"

    def ids(topics: str, file: str) -> list[str]:
        made.write_text(file)
        (job,) = expand(
            sweep,
            contents=lambda condition: {"data": topics if condition.data == "topics" else "docs"},
        ).jobs
        assert {key for key in job.content_hashes if key.startswith("named:")} == {
            "named:topics",
            f"named:{made}",
        }
        assert job.only(job.pairs[2:]).comparison_ids() == job.comparison_ids()[2:]
        return list(job.comparison_ids())

    before, other_text, other_file = ids("1", "one"), ids("2", "one"), ids("1", "two")
    assert [a == b for a, b in zip(before, other_text, strict=True)] == [False, True, True]
    assert [a == b for a, b in zip(before, other_file, strict=True)] == [True, False, True]
    made.unlink()
    assert "skip.file cannot be used" in str(refused(sweep))
