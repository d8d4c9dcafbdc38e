"""The fingerprint of a machine: torch-free, stable, and without anything that changes from hour to
hour.
"""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from workers.measure.environment import (
    ALLOCATOR_VARIABLES,
    LIBRARIES,
    PROJECT,
    allocator,
    commit,
    cores,
    cuda_uuid,
    environment_of,
    instructions,
    place_of_gpu,
)

SCRIPT = """
import json, sys
from workers.measure.environment import devices, environment_of
print(json.dumps([devices(), environment_of("cpu").environment_id, "torch" in sys.modules]))
"""


def elsewhere(**variables: str) -> list[object]:
    """Devices, identity and whether torch was imported, as another process with these variables
    sees them.
    """
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=PROJECT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[object] = json.loads(result.stdout)
    return found


def test_the_same_machine_has_the_same_identity_in_any_process() -> None:
    """Neither thread settings nor hidden GPUs change the CPU's identity; torch is not needed."""
    here = environment_of("cpu").environment_id
    assert elsewhere()[1:] == [here, False]
    assert elsewhere(CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", HOSTNAME="elsewhere") == [
        ["cpu"],
        here,
        False,
    ]


def test_the_fingerprint_holds_what_can_change_a_time() -> None:
    """CPU model, cores and library versions are there; the host's name is not."""
    environment = environment_of("cpu")
    assert environment.device_name == environment.facts["cpu"] != ""
    assert environment.facts["cores"] == f"{cores():g}"
    assert {name: environment.facts[name] for name in LIBRARIES} == {
        name: version(name) for name in LIBRARIES
    }
    assert environment.facts["python"] == platform.python_version()
    assert platform.node() not in environment.model_dump_json()


def test_instructions_are_those_that_the_system_lists(tmp_path: Path) -> None:
    """Whole words only, on x86 and on ARM; nothing where nothing is listed."""
    (tmp_path / "proc").mkdir()
    for text, wanted in (
        ("model name\t: A\nflags\t\t: fpu avx2 avx512f avx512_vnni\n", "avx2 avx512f avx512_vnni"),
        ("Features\t: fp asimd sve2 bf16\n", "asimd bf16"),
        ("processor\t: 0\n", ""),
    ):
        (tmp_path / "proc/cpuinfo").write_text(text)
        assert " ".join(instructions(tmp_path)) == wanted
    assert environment_of("cpu").facts.get("instructions", "") == " ".join(instructions())


def test_a_device_that_is_not_here_is_refused() -> None:
    """With every GPU hidden there is no CUDA environment, and the message names what there is."""
    script = "from workers.measure.environment import environment_of; environment_of('cuda')"
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=PROJECT,
        env=hidden,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "LookupError: no CUDA device here" in result.stderr


def test_the_allocator_of_cuda_is_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either variable counts, equal settings are one fact, the CPU's identity has none."""
    before = environment_of("cpu").environment_id
    for name in ALLOCATOR_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert not allocator()
    for name in ALLOCATOR_VARIABLES:
        monkeypatch.setenv(name, "expandable_segments: True")
        assert allocator() == "expandable_segments:True"
    monkeypatch.setenv(ALLOCATOR_VARIABLES[0], "max_split_size_mb:64")
    assert allocator() == "max_split_size_mb:64; expandable_segments:True"
    assert environment_of("cpu").environment_id == before


def test_the_commit_is_that_of_the_checkout() -> None:
    """The commit git names, marked when files differ; an unpacked archive has none."""
    if not (PROJECT / ".git").exists():
        assert commit() is None
        return
    head = subprocess.run(
        ["git", "-C", str(PROJECT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    assert (commit() or "").removesuffix("-dirty") == head.stdout.strip()


def test_gpu_is_found_by_its_uuid() -> None:
    """An index means the GPU that CUDA names, unless both count by bus."""
    uuids = ("GPU-aa", "GPU-ab", "GPU-c")
    assert place_of_gpu("0", uuids, "", lambda: "GPU-c") == 2
    assert place_of_gpu("1", uuids, "FASTEST_FIRST", lambda: "GPU-aa") == 0
    assert place_of_gpu("1", uuids, "PCI_BUS_ID", lambda: "GPU-c") == 1
    assert place_of_gpu("1", uuids, "", lambda: None) == 1
    assert place_of_gpu("GPU-ab", uuids, "", lambda: "GPU-c") == 1
    assert (
        place_of_gpu("3", uuids, "PCI_BUS_ID", lambda: None),
        place_of_gpu("GPU-x", uuids, "", lambda: None),
    ) == (None, None)


DRIVER = """
extern "C" int cuInit(unsigned) { return 0; }
extern "C" int cuDeviceGet(int* device, int ordinal) { *device = 7 + ordinal; return 0; }
extern "C" int cuDeviceGetUuid(unsigned char* uuid, int device) {
    for (int i = 0; i < 16; ++i) uuid[i] = device == 7 ? 0x11 * (i % 16) : 0;
    return 0;
}
"""


def test_uuid_of_cuda_is_written_as_nvml_writes_it(tmp_path: Path) -> None:
    """Through a library with CUDA's functions; none without one or without a device."""
    assert cuda_uuid(str(tmp_path / "none.so")) is None
    for name, text in {
        "driver": DRIVER,
        "empty": DRIVER.replace("return 0; }\nextern", "return 100; }\nextern", 1),
    }.items():
        (tmp_path / f"{name}.cpp").write_text(text)
        command = [
            "c++",
            "-shared",
            "-fPIC",
            str(tmp_path / f"{name}.cpp"),
            "-o",
            str(tmp_path / f"{name}.so"),
        ]
        subprocess.run(command, check=True)
    assert cuda_uuid(str(tmp_path / "driver.so")) == "GPU-00112233-4455-6677-8899-aabbccddeeff"
    assert cuda_uuid(str(tmp_path / "empty.so")) is None
