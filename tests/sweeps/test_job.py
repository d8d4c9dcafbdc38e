"""The identities of questions, comparisons, arms and jobs, pinned: they must never change
silently.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sweeps.model.condition import Condition, Overrides, condition_fields
from sweeps.model.identity import FrozenModel, canonical, digest
from sweeps.model.job import DENSE, Arm, Comparison, Job, Pair, Protocol, Step
from sweeps.model.kinds import KINDS

CONDITION = Condition(model="deit_tiny_patch16_224", image_size=224)
TOPK = Arm(stack=(Step(method="topk", params={"keep_rate": 0.5, "layers": [3, 6, 9]}),))
TOME = Arm(
    stack=(Step(method="tome", params={"r": 13, "r_ratio": None}, version=2),),
    overrides=Overrides(dtype="bfloat16"),
)
REPLICATE = Arm(replicate=1)


def test_identities_are_pinned() -> None:
    """Golden identities of arms, questions, answers to them, and jobs, apart for each round."""
    arm_ids = [arm.arm_id for arm in (DENSE, TOPK, TOME, REPLICATE)]
    assert arm_ids == [
        "6cb99fb9c27e3323",
        "212af6ab5482de97",
        "3bc2b5892660899b",
        "1f6363c3b86f919b",
    ]
    asked = [
        Comparison(condition=CONDITION, baseline=DENSE, arm=arm) for arm in (TOPK, TOME, REPLICATE)
    ]
    questions = ["8d1c45e173ffc4ce", "feae7638a9746988", "3e8fe9ce0e52fb2d"]
    assert [comparison.question_id for comparison in asked] == questions
    answers = ["efd858249fe3cb5c", "fb4583995c14d51d", "14b70d5e69b6464d"]
    assert [comparison.comparison_id() for comparison in asked] == answers
    assert asked[0].comparison_id({"weights": "ab" * 32}) == "f6018c4c9114283b"
    job = Job(condition=CONDITION, arms=(DENSE, TOPK, TOME), pairs=(Pair(0, 1), Pair(0, 2)))
    assert job.job_id == "6a991c259f4eb253"
    assert job.model_copy(update={"round": 1}).job_id == "dd772a9972c347ec"


def test_a_job_and_its_comparisons_agree() -> None:
    """A job read back from JSON has the same questions with the same identities."""
    job = Job(
        condition=CONDITION,
        arms=(DENSE, TOPK, TOME),
        pairs=(Pair(0, 1), Pair(0, 2)),
        content_hashes={"weights": "00"},
    )
    again = Job.model_validate_json(job.model_dump_json())
    assert again == job
    assert again.comparison_ids() == job.comparison_ids()
    assert job.comparison_ids()[0] == job.comparisons()[0].comparison_id({"weights": "00"})


def test_what_makes_answers_stale_and_what_does_not() -> None:
    """A raised VERSION and another way of measuring change comparison and job, not the question;
    how precisely is measured changes neither.
    """
    raised = Arm(stack=(TOPK.stack[0].model_copy(update={"version": 2}),))
    job = Job(condition=CONDITION, arms=(DENSE, TOPK), pairs=(Pair(0, 1),))
    finer = job.model_copy(update={"protocol": Protocol(half_width=0.001, pairs_max=5000)})
    assert (finer.job_id, finer.comparison_ids()) == (job.job_id, job.comparison_ids())
    for change in ({"arms": (DENSE, raised)}, {"protocol_version": 2}):
        newer = job.model_copy(update=change)
        assert newer.comparisons()[0].question_id == job.comparisons()[0].question_id
        assert newer.comparison_ids() != job.comparison_ids()
        assert newer.job_id != job.job_id


OTHER = Condition.model_validate_json(
    """{"model": "m", "weights": "pretrained", "image_size": 32, "batch_size": 2, "device": "cuda",
    "threads": 1, "dtype": "float16", "attention": "eager", "runtime": "compile", "seed": 1,
    "data": "digits", "corruption": "jpeg", "severity": 3, "prompt_tokens": 64, "new_tokens": 16,
    "kv_cache": "static", "decoding": "greedy", "exclusive": "device", "spare_cores": 1,
    "wait_policy": "active", "pinning": "cores", "inputs": "zeros", "values": {"n": 64},
    "x_axis": ["n"]}"""
)


def test_every_condition_field_is_part_of_the_question() -> None:
    """Each field of the condition makes another question of some kind, and of no kind that does not
    depend on it.
    """
    for kind in KINDS:
        plain = Comparison(kind=kind, condition=CONDITION, baseline=DENSE, arm=TOPK)
        ids = {}
        for name, value in OTHER:
            condition = CONDITION.model_copy(update={name: value})
            ids[name] = plain.model_copy(update={"condition": condition}).question_id
        changed = {name for name, question_id in ids.items() if question_id != plain.question_id}
        assert changed == set(condition_fields(kind))
        assert len({ids[name] for name in changed}) == len(changed)
    assert set().union(*map(condition_fields, KINDS)) == set(Condition.model_fields)


def test_an_answer_satisfies_what_is_no_finer() -> None:
    """An evaluation answers for fewer images or documents, and one of all for any number; documents
    count where tasks are requested; a width for no narrower one.
    """
    tasks = {"tasks": ("piqa",)}
    for finest, *coarser in (
        [Protocol(), Protocol(images=1000), Protocol(images=100)],
        [Protocol(**tasks, documents=count) for count in (None, 50, 20)],
        [Protocol(half_width=0.01), Protocol(half_width=0.02)],
        [Protocol(pairs_max=200), Protocol(pairs_max=100)],
    ):
        for each in coarser:
            assert finest.satisfies(each)
            assert not each.satisfies(finest)
            finest = each  # noqa: PLW2901 - each is finer than the next
    assert Protocol(**tasks, documents=20).satisfies(Protocol())


def test_a_bisected_job_keeps_its_questions() -> None:
    """Reducing a job to some pairs keeps their identities and drops the arms that are not
    needed.
    """
    job = Job(condition=CONDITION, arms=(DENSE, TOPK, TOME), pairs=(Pair(0, 1), Pair(0, 2)))
    half = job.only([Pair(0, 2)])
    assert half.arms == (DENSE, TOME)
    assert half.comparison_ids() == job.comparison_ids()[1:]


@pytest.mark.parametrize("pair", [Pair(0, 0), Pair(0, 2), Pair(-1, 0)])
def test_a_pair_must_name_two_arms(pair: Pair) -> None:
    """A pair outside the job's arms is refused with both numbers."""
    with pytest.raises(ValidationError, match="does not name two"):
        Job(condition=CONDITION, arms=(DENSE, TOPK), pairs=(pair,))


def test_arms_say_what_they_are() -> None:
    """The text of an arm for people: method, parameters, overrides and replicate."""
    assert str(TOME) == "tome(r=13) [dtype=bfloat16]"
    assert str(REPLICATE) == "dense [replicate=1]"
    assert Arm(stack=(*TOPK.stack, *TOME.stack)).method == "topk+tome"


def test_a_changed_copy_has_an_identity_of_its_own() -> None:
    """What was computed of a value is not carried over to a copy with other values, nor is it one
    of its fields.
    """
    requested = (TOME.arm_id, hash(TOME), TOME.canonical_text)
    other = TOME.model_copy(update={"replicate": 1})
    assert not {other.arm_id, hash(other), other.canonical_text} & set(requested)
    assert other.model_copy(update={"replicate": 0}).arm_id == TOME.arm_id
    assert dict(TOME).keys() == Arm.model_fields.keys()
    assert Arm.model_validate_json(TOME.model_dump_json()) == TOME


# ---- canonical JSON and digests ----


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


class Thing(FrozenModel):
    size: int
    note: str | None = None


def test_canonical_json_is_pinned() -> None:
    """The form that identities hash: sorted keys, no spaces, no nulls in mappings, floats that stay
    floats, models as the mapping of their set fields; NaN has none.
    """
    value = {"b": [1, 1.0, None, True], "a": {"é": "x", "gone": None}, "c": -0.0}
    assert canonical(value) == '{"a":{"é":"x"},"b":[1,1.0,null,true],"c":0.0}'
    assert digest({}) == "44136fa355b3678a"
    assert digest({"model": "deit_tiny_patch16_224", "image_size": 224}) == "8f624f0e5671c5f0"
    assert canonical(Thing(size=3)) == canonical({"size": 3}) == '{"size":3}'
    assert hash(Thing(size=3)) == hash(Thing(size=3, note=None))
    with pytest.raises(ValueError, match="JSON"):
        canonical({"x": float("nan")})


@settings(max_examples=50)
@given(st.dictionaries(st.text(), values, max_size=5))
def test_equal_content_is_one_identity(value: dict[str, object]) -> None:
    """In another order of keys, and stored as canonical JSON and read again."""
    text = canonical(value)
    assert canonical(dict(reversed(list(value.items())))) == text
    assert canonical(json.loads(text)) == text
