"""Names of timm beyond the catalogue: tagged weights, models that are not supported and why, heads
of checkpoints.
"""

import json
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file

from sweeps.geometry.vit_catalogue import UNSUPPORTED, classes, networks, not_known
from sweeps.model.condition import Condition
from sweeps.model.job import DENSE, Arm, Job, Pair, Protocol, Step
from tests.catalogues import geometry_of, meta, unsupported
from workers.data import check_head
from workers.errors import DataError
from workers.methods import of_modality
from workers.models.vision import load_vision
from workers.run import run

CPU = torch.device("cpu")


def test_every_model_of_timm_is_known_or_has_a_reason() -> None:
    """In the catalogue, or with the reason that the code finds now."""
    written = {key: names.split() for key, names in json.loads(UNSUPPORTED.read_text()).items()}
    assert unsupported() == written
    assert {*networks(), *(name for names in written.values() for name in names)} >= set(
        timm.list_models()
    )
    for name in timm.list_models():
        if name not in networks():
            assert "is not supported: " in not_known(name, [*networks()]), name


@pytest.mark.parametrize(
    "name",
    [
        "vit_base_patch16_224.mae",
        "vit_base_patch16_224.augreg_in21k",
        "vit_small_patch16_224.augreg_in21k_ft_in1k",
    ],
)
def test_a_tag_has_the_geometry_that_timm_builds(name: str) -> None:
    """Outputs, pooling, image size and MACs of a tag are those of timm's model."""
    model = meta(name)
    assert networks()[name] == geometry_of(name.partition(".")[0], model)
    assert classes(name) == model.num_classes


def test_a_tagged_model_runs(tmp_path: Path) -> None:
    """Loaded, reduced and counted like a bare name; nothing is downloaded."""
    tome = of_modality("vision")["tome"]
    arm = Arm(stack=(Step(method="tome", params=tome.Params(r=2).model_dump(mode="json")),))
    job = Job(
        condition=Condition(model="test_vit.r160_in1k", image_size=64),
        arms=(DENSE, arm),
        pairs=(Pair(0, 1),),
        protocol=Protocol(pairs_min=2, pairs_max=2, budget_s=0.01),
    )
    outcome = run(job, pass_seconds=0.01)
    assert not outcome.failures
    assert [each.flags for each in outcome.arms] == [(), ()], outcome.notes


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_checkpoint_with_a_head_of_its_own(tmp_path: Path, suffix: str) -> None:
    """Five classes keep five outputs, the saved model's logits, and their MACs."""
    torch.manual_seed(0)
    tuned = timm.create_model("test_vit", num_classes=5, img_size=64).eval()
    file = tmp_path / f"tuned{suffix}"
    save_file(tuned.state_dict(), file) if suffix == ".safetensors" else torch.save(
        {"state_dict": tuned.state_dict()}, file
    )
    found = load_vision(Condition(model="test_vit", image_size=64, weights=str(file)), CPU)
    x = torch.randn(2, 3, 64, 64)
    with torch.inference_mode():
        torch.testing.assert_close(found.model(x), tuned(x))
    assert found.network == geometry_of("test_vit", timm.create_model("test_vit", num_classes=5))


def test_a_head_that_does_not_fit_the_data(tmp_path: Path) -> None:
    """A head for other classes is refused before anything runs."""
    with pytest.raises(DataError, match="digits has 10 classes, the head of test_vit has 1000"):
        check_head(Condition(model="test_vit", image_size=32, data="digits"))
    check_head(Condition(model="digits_vit_64", image_size=32, data="digits", weights="trained"))
    tuned = tmp_path / "tuned.safetensors"
    save_file(timm.create_model("test_vit", num_classes=5).state_dict(), tuned)
    with pytest.raises(DataError, match="the head of test_vit has 5"):
        check_head(Condition(model="test_vit", image_size=32, data="digits", weights=str(tuned)))
    for name in ("ant", "cat"):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "0.png").write_bytes(b"")
    folder = Condition(model="test_vit", image_size=32, data=f"imagefolder:{tmp_path / 'data'}")
    with pytest.raises(DataError, match="the data has 2 classes and the model's head 1000"):
        check_head(folder)
    (tmp_path / "data" / "class_map.txt").write_text("ant 310\ncat 281\n")
    check_head(folder)


def test_unknown_words_and_tags() -> None:
    """A misspelt name still has its neighbour, and a tag that does not exist those that do."""
    assert "did you mean 'vit_base_patch16_224'" in not_known("vit_base_patch16_244", [*networks()])
    assert "no weights with the tag 'mea'; did you mean 'mae'" in not_known(
        "vit_base_patch16_224.mea", [*networks()]
    )
