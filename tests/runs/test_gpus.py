from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dslint.runs.gpu_table import CLOUD_MACHINES, GIB, GPUS, Gpu
from dslint.runs.gpus import NoGpuFound, UnknownGpu, find_gpu, gpu_names, local_gpus

Driver = Callable[[str], None]

WRITTEN = {
    "h100": "H100",
    "H100": "H100",
    "NVIDIA H100 80GB HBM3": "H100",
    "NVIDIA H100 PCIe": "H100-PCIe",
    "NVIDIA H100 NVL": "H100-NVL",
    "h100-nvl-94gb": "H100-NVL",
    "nvidia-h100-80gb": "H100",
    "nvidia-h100-mega-80gb": "H100",
    "NVIDIA H200": "H200",
    "h200-141gb": "H200",
    "NVIDIA GH200 480GB": "GH200-96G",
    "NVIDIA GH200 144G HBM3e": "GH200-144G",
    "NVIDIA B200": "B200",
    "NVIDIA B300 SXM6 AC": "B300",
    "NVIDIA GB200": "GB200",
    "NVIDIA H20": "H20",
    "a100": "A100-80G",
    "A100-80g": "A100-80G",
    "a100-80gb": "A100-80G",
    "a100_40gb": "A100-40G",
    "a100 40 GB": "A100-40G",
    "A100 40GiB": "A100-40G",
    "a100-40": "A100-40G",
    "NVIDIA A100-SXM4-80GB": "A100-80G",
    "NVIDIA A100-SXM4-40GB": "A100-40G",
    "A100-PCIE-40GB": "A100-40G",
    "NVIDIA A100 80GB PCIe": "A100-80G",
    "NVIDIA A800-SXM4-80GB": "A800-80G",
    "Tesla V100-SXM2-32GB": "V100-32G",
    "Tesla V100-PCIE-16GB": "V100-16G",
    "Tesla V100S-PCIE-32GB": "V100-32G",
    "v100": "V100-32G",
    "teslav100": "V100-32G",
    "v100-16g": "V100-16G",
    "Tesla T4": "T4",
    "t4-15gb": "T4",
    "Tesla P100-PCIE-16GB": "P100-16G",
    "Tesla P40": "P40",
    "Tesla K80": "K80",
    "NVIDIA A10G": "A10G",
    "a10": "A10",
    "NVIDIA L40S": "L40S",
    "l40s 48gb": "L40S",
    "NVIDIA L4": "L4",
    "rtx3090": "RTX 3090",
    "3090": "RTX 3090",
    "RTX_3090": "RTX 3090",
    "3090 24gb": "RTX 3090",
    "NVIDIA GeForce RTX 3090 Ti": "RTX 3090 Ti",
    "2080ti": "RTX 2080 Ti",
    "NVIDIA GeForce RTX 2080 Ti": "RTX 2080 Ti",
    "GeForce GTX 1080 Ti": "GTX 1080 Ti",
    "NVIDIA GeForce GTX 1660 SUPER": "GTX 1660 Super",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
    "NVIDIA GeForce RTX 4090 D": "RTX 4090",
    "4060ti": "RTX 4060 Ti-16G",
    "4060ti-8gb": "RTX 4060 Ti-8G",
    "RTX 5090": "RTX 5090",
    "NVIDIA RTX A6000": "RTX A6000",
    "a6000": "RTX A6000",
    "NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000 Blackwell",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "RTX PRO 6000 Blackwell",
    "Quadro RTX 8000": "Quadro RTX 8000",
    "NVIDIA TITAN RTX": "Titan RTX",
    "NVIDIA TITAN V": "Titan V",
    "TITAN X (Pascal)": "Titan X (Pascal)",
    "AMD Instinct MI250X / MI250": "MI250X",
    "AMD Instinct MI300X": "MI300X",
    "mi300x-192gb": "MI300X",
}

RENTED = {
    "p3.2xlarge": "V100-16G",
    "p3dn.24xlarge": "V100-32G",
    "p4d.24xlarge": "A100-40G",
    "ml.p4d.24xlarge": "A100-40G",
    "p4de.24xlarge": "A100-80G",
    "p5.48xlarge": "H100",
    "p5en.48xlarge": "H200",
    "p6-b200.48xlarge": "B200",
    "g4dn.xlarge": "T4",
    "g5.12xlarge": "A10G",
    "g6.xlarge": "L4",
    "g6e.12xlarge": "L40S",
    "a2-highgpu-1g": "A100-40G",
    "a2-ultragpu-8g": "A100-80G",
    "a3-highgpu-8g": "H100",
    "a3-ultragpu-8g": "H200",
    "a4-highgpu-8g": "B200",
    "g2-standard-4": "L4",
    "nvidia-tesla-a100": "A100-40G",
    "Standard_NC24ads_A100_v4": "A100-80G",
    "standard_nc96ads_a100_v4": "A100-80G",
    "Standard_ND96asr_v4": "A100-40G",
    "Standard_ND96amsr_A100_v4": "A100-80G",
    "ND96isr_H100_v5": "H100",
    "Standard_ND96isr_H200_v5": "H200",
    "Standard_NC40ads_H100_v5": "H100-NVL",
    "Standard_NC6s_v3": "V100-16G",
    "Standard_NC24rs_v3": "V100-16G",
    "Standard_ND40rs_v2": "V100-32G",
    "Standard_NC4as_T4_v3": "T4",
    "Standard_ND96isr_MI300X_v5": "MI300X",
    "BM.GPU.H100.8": "H100",
    "VM.GPU.A10.1": "A10",
}


@pytest.mark.parametrize(("text", "name"), WRITTEN.items())
def test_a_gpu_is_found_however_its_name_is_written(text: str, name: str) -> None:
    assert find_gpu(text).name == name


@pytest.mark.parametrize(("text", "name"), RENTED.items())
def test_a_cloud_machine_type_names_the_gpu_in_it(text: str, name: str) -> None:
    assert find_gpu(text).name == name


@pytest.mark.parametrize("gpu", GPUS, ids=gpu_names())
def test_every_gpu_is_found_by_its_own_name(gpu: Gpu) -> None:
    assert find_gpu(gpu.name) == gpu


@pytest.mark.parametrize("gpu", GPUS, ids=gpu_names())
def test_every_alias_leads_to_a_gpu_that_has_it(gpu: Gpu) -> None:
    for alias in gpu.aliases:
        found = find_gpu(alias)
        assert found == gpu or alias in found.aliases or found.name == alias


def test_names_are_unique() -> None:
    assert len(set(gpu_names())) == len(GPUS) > 100


def test_every_cloud_machine_holds_a_known_gpu() -> None:
    assert {machine.gpu for machine in CLOUD_MACHINES} <= set(gpu_names())


def test_the_bare_name_of_a_family_means_its_largest_member() -> None:
    for name in ("a100", "v100", "3080", "gh200", "p100", "h20"):
        first = find_gpu(name)
        members = [gpu for gpu in GPUS if name in {alias.lower() for alias in gpu.aliases}]
        assert first.memory == max(gpu.memory for gpu in (first, *members)) or first.name.lower() == name


@pytest.mark.parametrize("text", ["v100", "t4", "p100", "2080ti", "titan rtx", "1660", "quadro rtx 8000"])
def test_gpus_before_ampere_have_no_bf16_hardware(text: str) -> None:
    assert not find_gpu(text).bf16


@pytest.mark.parametrize("text", ["a100", "a10g", "3090", "l4", "h100", "b200", "mi210", "mi300x"])
def test_gpus_from_ampere_on_have_bf16_hardware(text: str) -> None:
    assert find_gpu(text).bf16


def test_fp16_needs_compute_capability_seven() -> None:
    assert find_gpu("v100").fp16
    assert find_gpu("t4").fp16
    assert not find_gpu("p100").fp16
    assert not find_gpu("1080ti").fp16
    assert not find_gpu("k80").fp16


def test_fp8_needs_ada_hopper_or_later() -> None:
    assert all(find_gpu(name).fp8 for name in ("l4", "4090", "h100", "b200", "mi300x"))
    assert not any(find_gpu(name).fp8 for name in ("v100", "a100", "3090", "mi250x"))


def test_memory_is_in_bytes() -> None:
    assert find_gpu("a100-80g").memory == 80 * GIB
    assert find_gpu("mi250x").memory == 64 * GIB


def test_amd_gpus_have_no_compute_capability() -> None:
    assert find_gpu("mi300x").compute_capability is None


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("h10O", "H100"),
        ("a1000-80g", "A100-80G"),
        ("rtx 6000", "RTX 6000 Ada"),
        ("rtx 6000", "Quadro RTX 6000"),
    ],
)
def test_an_unknown_name_is_met_with_similar_ones(text: str, suggestion: str) -> None:
    with pytest.raises(UnknownGpu, match=f"did you mean .*{suggestion}.*--gpu list"):
        find_gpu(text)


def test_a_name_like_no_other_still_says_how_to_list_them() -> None:
    with pytest.raises(UnknownGpu, match=r"^unknown GPU 'zzzzzz': \(`--gpu list`"):
        find_gpu("zzzzzz")


@pytest.mark.parametrize("text", ["", "   ", "NVIDIA", "---", "🙂"])
def test_text_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(UnknownGpu, match="--gpu list"):
        find_gpu(text)


def test_a_memory_that_a_gpu_is_not_sold_with_is_refused() -> None:
    with pytest.raises(UnknownGpu, match=r"with 60 GB is known, only A100-80G \(80 GB\), A100-40G \(40 GB\)"):
        find_gpu("a100-60gb")


def test_a_very_long_text_is_cut_in_the_message() -> None:
    with pytest.raises(UnknownGpu) as caught:
        find_gpu("x" * 100_000 + " 9" * 10_000 + "gb")
    assert len(str(caught.value)) < 200


def test_unknown_gpu_is_a_value_error() -> None:
    assert issubclass(UnknownGpu, ValueError)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Puts a stand-in for nvidia-smi on PATH that runs the given shell lines."""

    def install(script: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")

    return install


def test_local_gpus_are_those_that_the_driver_lists(driver: Driver) -> None:
    driver("echo 'NVIDIA A100-SXM4-40GB, 40960, 8.0'\necho 'Tesla T4, 15360, 7.5'")
    assert [gpu.name for gpu in local_gpus()] == ["A100-40G", "T4"]


def test_the_driver_is_asked_for_name_memory_and_capability(driver: Driver) -> None:
    driver('[ "$1" = "--query-gpu=name,memory.total,compute_cap" ] && echo "NVIDIA L4, 23034, 8.9"')
    assert [gpu.name for gpu in local_gpus()] == ["L4"]


def test_reported_memory_chooses_between_variants_of_one_name(driver: Driver) -> None:
    driver("echo 'NVIDIA GeForce RTX 3080, 10240, 8.6'\necho 'NVIDIA GeForce RTX 3080, 12288, 8.6'")
    assert [gpu.name for gpu in local_gpus()] == ["RTX 3080-10G", "RTX 3080-12G"]


def test_an_unlisted_gpu_is_built_from_the_drivers_report(driver: Driver) -> None:
    driver("echo 'NVIDIA GeForce RTX 3080 Laptop GPU, 16384, 8.6'\necho 'NVIDIA Future 9000, 1000000, 13.0'")
    laptop, future = local_gpus()
    assert (laptop.name, laptop.architecture) == ("GeForce RTX 3080 Laptop GPU", "Ampere")
    assert (laptop.memory, laptop.bf16, laptop.fp8) == (16384 * 1024**2, True, False)
    assert (future.architecture, future.compute_capability, future.fp8) == ("unknown", (13, 0), True)


def test_memory_that_the_driver_does_not_tell_comes_from_the_table(driver: Driver) -> None:
    driver("echo 'NVIDIA GB10, [N/A], 12.1'")
    assert local_gpus() == (find_gpu("gb10"),)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 0", "lists no GPU"),
        ("echo 'No devices were found'; exit 6", "No devices were found"),
        ("echo 'driver mismatch' >&2; exit 18", r"failed \(driver mismatch\)"),
        ("exit 9", "exit status 9"),
        ("echo 'NVIDIA Thing, [N/A], [N/A]'", "reports an unknown GPU"),
        ("echo garbage", "reports an unknown GPU"),
    ],
)
def test_a_driver_without_an_answer_is_reported(driver: Driver, script: str, reason: str) -> None:
    driver(script)
    with pytest.raises(NoGpuFound, match=f"{reason}.*--gpu"):
        local_gpus()


def test_a_driver_that_hangs_is_given_up(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dslint.runs.gpus._QUERY_SECONDS", 0.2)
    driver("exec sleep 20")
    with pytest.raises(NoGpuFound, match="no answer"):
        local_gpus()


def test_a_machine_without_a_driver_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoGpuFound, match="can't be run on this machine"):
        local_gpus()


def test_importing_the_module_loads_nothing_heavy() -> None:
    code = "import sys, dslint.runs.gpus; print({'difflib', 'subprocess', 'fnmatch'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
