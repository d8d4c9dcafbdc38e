"""Image folders and Hugging Face data sets on disk: order, classes, class maps, what is broken, and
timm's preprocessing.
"""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import timm
import torch
from PIL import Image

from sweeps.model.condition import Condition, Rectangle, image_shape
from workers.data import check_head, images
from workers.data.corruptions import corrupt
from workers.data.images import imagenet_synsets
from workers.data.preprocessing import Preprocessing, batches
from workers.errors import DataError
from workers.models.vision import load_vision

WIDE = Rectangle(height=32, width=64)
MODEL = load_vision(Condition(model="test_vit", image_size=64), torch.device("cpu")).model


def pixels(level: int, size: tuple[int, int] = (20, 30)) -> Image.Image:
    """An image of one colour."""
    return Image.fromarray(np.full((*size, 3), level, np.uint8))


def written(level: int) -> bytes:
    """The same as the content of a PNG file."""
    file = io.BytesIO()
    pixels(level).save(file, "PNG")
    return file.getvalue()


def folder(root: Path, **classes: int) -> str:
    """A folder with so many images in each class; their level distinguishes them."""
    level = 0
    for name, count in classes.items():
        (root / name).mkdir(parents=True)
        for index in range(count):
            (root / name / f"{index}.png").write_bytes(written(level := (level + 1) % 256))
    return f"imagefolder:{root}"


def table(levels: list[int], labels: list[int], names: list[str] | None = None) -> pa.Table:
    """What a Parquet file of the hub holds."""
    column = [{"bytes": written(level), "path": f"{level}.png"} for level in levels]
    found = pa.table({"image": column, "label": labels})
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": names}}
    return (
        found.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
        if names
        else found
    )


def levels(data: str) -> list[int]:
    """The level of each image, in order."""
    found = images(data)
    return [np.asarray(found.read(index)).max().item() for index in range(len(found))]


def test_a_folder_of_class_folders(tmp_path: Path) -> None:
    """Classes and images in the order of names, deeper ones too; other files are no images."""
    data = folder(tmp_path, cat=2, ant=1)
    (tmp_path / "cat" / "more").mkdir()
    (tmp_path / "cat" / "more" / "x.PNG").write_bytes(written(9))
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "readme.png").write_bytes(written(9))
    (tmp_path / ".hidden").mkdir()
    found = images(data)
    assert found.classes == ("ant", "cat")
    assert found.names == ("ant/0.png", "cat/0.png", "cat/1.png", "cat/more/x.PNG")
    assert found.labels.tolist() == [0, 1, 1, 1]
    assert levels(data) == [3, 1, 2, 9]


def test_a_class_map_names_some_of_the_outputs(tmp_path: Path) -> None:
    """Classes stand for the outputs that class_map.txt names; what is wrong in it is named."""
    data = folder(tmp_path, cat=1, ant=1)
    with pytest.raises(DataError, match="2 classes and the model's head 1000"):
        images(data).outputs(1000)
    lines = tmp_path / "class_map.txt"
    lines.write_text("# of ImageNet\nant 310\ncat 281  # tabby\nwolf 269\n")
    assert images(data).outputs(1000).tolist() == [310, 281]
    with pytest.raises(DataError, match=r"output 310.* 0 to 9"):
        images(data).outputs(10)
    lines.write_text("ant 310\n")
    with pytest.raises(DataError, match="no line for 1 of the classes, the first being cat"):
        images(data).outputs(1000)
    lines.write_text("ant 310\nant 4\n")
    with pytest.raises(DataError, match="line 2"):
        images(data)


def test_folders_of_imagenet_map_by_name(tmp_path: Path) -> None:
    """ImageNet-R's folders stand for timm's outputs; others need a class map."""
    info = Path(timm.__file__).parent / "data" / "_info"
    names = (info / "imagenet_r_synsets.txt").read_text().split()
    data = folder(tmp_path, **dict.fromkeys(reversed(names), 1))
    outputs = images(data).outputs(1000)
    assert outputs.tolist() == list(map(int, (info / "imagenet_r_indices.txt").read_text().split()))
    assert list(imagenet_synsets()) == timm.data.ImageNetInfo().label_names()
    with pytest.raises(DataError, match="200 classes and the model's head 21841"):
        images(data).outputs(21841)
    check_head(Condition(model="deit_tiny_patch16_224", image_size=224, data=data))
    folder(tmp_path, n00000001=1)
    with pytest.raises(DataError, match="201 classes and the model's head 1000"):
        images(data).outputs(1000)


@pytest.mark.parametrize("form", ["imagefolder:", "huggingface:"])
def test_nothing_there(tmp_path: Path, form: str) -> None:
    """A path that is not there is an error of this machine; an empty folder is unusable data."""
    with pytest.raises(FileNotFoundError, match="is not on this machine"):
        images(f"{form}{tmp_path / 'gone'}")
    with pytest.raises(DataError, match=r"holds no images|holds neither"):
        images(f"{form}{tmp_path}")


def test_parquet(tmp_path: Path) -> None:
    """Files are read by row group, in the order of names, with the classes' names."""
    (tmp_path / "data").mkdir()
    for part, (shades, labels) in enumerate([([1, 2, 3], [0, 1, 1]), ([4, 5], [1, 0])]):
        file = tmp_path / "data" / f"test-0000{part}-of-00002.parquet"
        pq.write_table(table(shades, labels, ["ant", "cat"]), file, row_group_size=2)
    data = f"huggingface:{tmp_path}"
    found = images(data)
    assert found.classes == ("ant", "cat")
    assert found.labels.tolist() == [0, 1, 1, 1, 0]
    assert levels(data) == [1, 2, 3, 4, 5]
    assert np.asarray(found.read(4)).max() == 5
    assert np.asarray(found.read(0)).max() == 1


def test_saved_to_disk(tmp_path: Path) -> None:
    """Arrow streams of `datasets` are read the same way; a split has to be named."""
    for split, shade in (("test", 7), ("train", 8)):
        (tmp_path / split).mkdir()
        with pa.OSFile(str(tmp_path / split / "data-00000-of-00001.arrow"), "wb") as sink:
            rows = table([shade, shade], [0, 1])
            with pa.ipc.new_stream(sink, rows.schema) as stream:
                stream.write_table(rows)
    with pytest.raises(DataError, match="splits test, train; write huggingface:"):
        images(f"huggingface:{tmp_path}")
    with pytest.raises(DataError, match="no split 'val'"):
        images(f"huggingface:{tmp_path}#val")
    assert (
        levels(f"huggingface:{tmp_path}#train") == levels(f"huggingface:{tmp_path}/train") == [8, 8]
    )


def test_columns_without_meaning(tmp_path: Path) -> None:
    """No images, no classes, labels that are no classes, a broken file: each is named."""
    file = tmp_path / "x.parquet"
    data = f"huggingface:{file}"
    pq.write_table(pa.table({"text": ["a"], "label": [0]}), file)
    with pytest.raises(DataError, match="no column holds images"):
        images(data)
    pq.write_table(table([1], [0]).drop_columns(["label"]), file)
    with pytest.raises(DataError, match="no column holds classes"):
        images(data)
    pq.write_table(table([1], [-1], ["ant"]), file)
    with pytest.raises(DataError, match="labels -1 to -1"):
        images(data)
    file.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(DataError, match="cannot be read"):
        images(data)


def test_preprocessing_is_timms(tmp_path: Path) -> None:
    """An image goes through timm's own evaluation transform for the model, at each arm's size."""
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8))
    found = Preprocessing(MODEL, Condition(model="test_vit", image_size=64), {64, 96, WIDE})(
        image, "x"
    )
    for size in (64, 96, WIDE):
        config = {
            **timm.data.resolve_model_data_config(MODEL),
            "input_size": (3, *image_shape(size)),
        }
        expected = timm.data.create_transform(**config, is_training=False)(image)
        assert torch.equal(found[size], expected)


def test_corruption_comes_before_normalisation() -> None:
    """It is that of the cut-out picture; another size gets the same picture, resized."""
    condition = Condition(model="test_vit", image_size=64, corruption="pixelate", severity=5)
    image = Image.fromarray(
        np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    ).resize((90, 90))
    prepare = Preprocessing(MODEL, condition, {64, 32, WIDE})
    found = prepare(image, "x")
    clean = Preprocessing(MODEL, condition.model_copy(update={"corruption": None}), {64})
    seen = corrupt(prepare.cut[64](image), "pixelate", 5, "x")
    assert torch.equal(found[64], clean.normalise[64](seen))
    assert found[32].shape == (3, 32, 32)
    assert found[WIDE].shape == (3, 32, 64)
    assert not torch.equal(found[64], clean(image, "x")[64])


def test_unreadable_images_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """Broken, cut-off and empty files are named; all others come in order, in batches."""
    data = folder(tmp_path, cat=12)
    whole = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(
        whole, "PNG"
    )
    for name, content in (
        ("3.png", b"no image"),
        ("5.png", whole.getvalue()[:2000]),
        ("7.png", b""),
    ):
        (tmp_path / "cat" / name).write_bytes(content)
    found = images(data)
    prepare = Preprocessing(MODEL, Condition(model="test_vit", image_size=64), {64})
    seen = list(batches(found, range(12), prepare, 4, 3))
    assert [batch.places for batch in seen] != [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]
    named = {name for batch in seen for name in batch.unreadable}
    assert named == {"cat/3.png", "cat/5.png", "cat/7.png"}
    read = [place for batch in seen for place in batch.places]
    assert read == [place for place in range(12) if found.names[place] not in named]
    assert all(batch.inputs[64].shape == (len(batch.places), 3, 64, 64) for batch in seen)
