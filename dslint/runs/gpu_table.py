"""The GPUs that dslint knows by name, and the cloud machines that hold them.

A row is one GPU as a process sees it: a board with two or four chips (K80, M60, A16, MI250X) counts as
that many GPUs, and its memory is that of one chip. Memory is the capacity in the name of the product;
`nvidia-smi` reports up to a tenth less where error correction takes its share. Where one name is sold with
several memories, the largest comes first, and the bare name means that one, unless a row is called so: what
is uncertain must not raise a false alarm about memory.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1024**3


@dataclass(frozen=True)
class Gpu:
    """One type of GPU, and what DeepSpeed can train on it.

    Attributes:
        name: the name used in reports.
        architecture: the maker's name for the generation.
        compute_capability: NVIDIA's number for what the chip can do; None for other makers.
        memory: bytes of device memory.
        fp16: DeepSpeed trains fp16 on it without being told to do so regardless. See `fp16_supported`.
        bf16: it computes in bf16 in hardware. See `bf16_in_hardware`.
        fp8: it computes in fp8 in hardware.
        aliases: other names that people write, besides the name.
    """

    name: str
    architecture: str
    compute_capability: tuple[int, int] | None
    memory: int
    fp16: bool
    bf16: bool
    fp8: bool
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class CloudMachine:
    """A family of rented machines and the GPU in them.

    Attributes:
        pattern: the machine type in lower case, with `*` for any text.
        gpu: the name of the GPU in `GPUS`.
    """

    pattern: str
    gpu: str


def fp16_supported(capability: tuple[int, int]) -> bool:
    """Whether DeepSpeed accepts fp16 on a GPU with this compute capability.

    DeepSpeed's accelerator/cuda_accelerator.py, CUDA_Accelerator.is_fp16_supported: the major number must be
    7 or more; 6 is enough with DS_ALLOW_DEPRECATED_FP16=1 in the environment. Otherwise
    DeepSpeedEngine._do_sanity_check in runtime/engine.py raises
    "ValueError: Type fp16 is not supported on your device.".
    """
    return capability >= (7, 0)


def bf16_in_hardware(capability: tuple[int, int]) -> bool:
    """Whether a GPU with this compute capability computes in bf16, rather than emulating it.

    This is not what DeepSpeed asks: CUDA_Accelerator.is_bf16_supported in accelerator/cuda_accelerator.py
    returns `torch.cuda.is_bf16_supported()`, whose `including_emulation` is True unless told otherwise
    (torch 2.13, torch/cuda/__init__.py), so an older GPU passes if a bf16 tensor can be made on it: the run
    is then emulated, not refused.
    """
    return capability >= (8, 0)


def fp8_in_hardware(capability: tuple[int, int]) -> bool:
    """Whether a GPU with this compute capability has fp8 units (Ada, Hopper and later)."""
    return capability >= (8, 9)


def nvidia_gpu(
    name: str, architecture: str, capability: tuple[int, int], memory: int, aliases: tuple[str, ...] = ()
) -> Gpu:
    """An NVIDIA GPU, whose abilities follow from its compute capability."""
    return Gpu(
        name=name,
        architecture=architecture,
        compute_capability=capability,
        memory=memory,
        fp16=fp16_supported(capability),
        bf16=bf16_in_hardware(capability),
        fp8=fp8_in_hardware(capability),
        aliases=aliases,
    )


def _nvidia(name: str, architecture: str, capability: tuple[int, int], gib: int, *aliases: str) -> Gpu:
    return nvidia_gpu(name, architecture, capability, gib * GIB, aliases)


def _geforce(name: str, architecture: str, capability: tuple[int, int], gib: int, *aliases: str) -> Gpu:
    """A consumer GPU: people also write its number alone, "3090"."""
    return nvidia_gpu(name, architecture, capability, gib * GIB, (name[len("RTX ") :], *aliases))


def _instinct(name: str, architecture: str, gib: int, *aliases: str, fp8: bool = False) -> Gpu:
    """An AMD GPU.

    ROCm builds of torch answer yes when asked for bf16 (torch/cuda/__init__.py, is_bf16_supported) and give a
    major number of 9 where NVIDIA has a compute capability, so DeepSpeed accepts fp16 too.
    """
    return Gpu(name, architecture, None, gib * GIB, fp16=True, bf16=True, fp8=fp8, aliases=aliases)


_DATACENTRE = (
    _nvidia("GB300", "Blackwell Ultra", (10, 3), 279, "GB300 NVL72"),
    _nvidia("B300", "Blackwell Ultra", (10, 3), 270, "B300 SXM6 AC"),
    _nvidia("GB200", "Blackwell", (10, 0), 186, "GB200 NVL72"),
    _nvidia("B200", "Blackwell", (10, 0), 180),
    _nvidia("GB10", "Blackwell", (12, 1), 128, "DGX Spark"),
    _nvidia("GH200-144G", "Hopper", (9, 0), 144, "GH200"),
    # The 480 GB in this name, as nvidia-smi prints it, are the processor's memory.
    _nvidia("GH200-96G", "Hopper", (9, 0), 96, "GH200", "GH200 480GB"),
    _nvidia("H200", "Hopper", (9, 0), 141, "H200 SXM", "H200 NVL"),
    _nvidia("H100", "Hopper", (9, 0), 80, "H100 SXM", "H100 SXM5", "H100-80G", "H100 mega"),
    _nvidia("H100-PCIe", "Hopper", (9, 0), 80, "H100 PCIe 80G"),
    _nvidia("H100-NVL", "Hopper", (9, 0), 94, "H100"),
    _nvidia("H800", "Hopper", (9, 0), 80),
    _nvidia("H20-141G", "Hopper", (9, 0), 141, "H20", "H20-3e"),
    _nvidia("H20", "Hopper", (9, 0), 96, "H20-96G"),
    _nvidia("A100-80G", "Ampere", (8, 0), 80, "A100", "A100-80", "A100X"),
    _nvidia("A100-40G", "Ampere", (8, 0), 40, "A100", "A100-40"),
    _nvidia("A800-80G", "Ampere", (8, 0), 80, "A800"),
    _nvidia("A800-40G", "Ampere", (8, 0), 40, "A800", "A800 40GB Active"),
    _nvidia("A40", "Ampere", (8, 6), 48),
    _nvidia("A30", "Ampere", (8, 0), 24),
    _nvidia("A16", "Ampere", (8, 6), 16),
    _nvidia("A10", "Ampere", (8, 6), 24),
    _nvidia("A10G", "Ampere", (8, 6), 24),
    _nvidia("A2", "Ampere", (8, 6), 16),
    _nvidia("L40S", "Ada", (8, 9), 48),
    _nvidia("L40", "Ada", (8, 9), 48, "L40G"),
    _nvidia("L20", "Ada", (8, 9), 48),
    _nvidia("L4", "Ada", (8, 9), 24),
    _nvidia("L2", "Ada", (8, 9), 24),
    _nvidia("V100-32G", "Volta", (7, 0), 32, "V100", "V100-32", "V100S"),
    _nvidia("V100-16G", "Volta", (7, 0), 16, "V100", "V100-16"),
    _nvidia("T4", "Turing", (7, 5), 16, "T4G"),
    _nvidia("P100-16G", "Pascal", (6, 0), 16, "P100"),
    _nvidia("P100-12G", "Pascal", (6, 0), 12, "P100"),
    _nvidia("P40", "Pascal", (6, 1), 24),
    _nvidia("P4", "Pascal", (6, 1), 8),
    _nvidia("M60", "Maxwell", (5, 2), 8),
    _nvidia("M40-24G", "Maxwell", (5, 2), 24, "M40"),
    _nvidia("M40-12G", "Maxwell", (5, 2), 12, "M40"),
    _nvidia("K80", "Kepler", (3, 7), 12),
)

_WORKSTATION = (
    _nvidia(
        "RTX PRO 6000 Blackwell",
        "Blackwell",
        (12, 0),
        96,
        "RTX PRO 6000",
        "RTX PRO 6000 Blackwell Server",
        "RTX PRO 6000 Blackwell Workstation",
        "RTX PRO 6000 Blackwell Max-Q Workstation",
    ),
    _nvidia("RTX PRO 5000 Blackwell-72G", "Blackwell", (12, 0), 72, "RTX PRO 5000", "RTX PRO 5000 Blackwell"),
    _nvidia("RTX PRO 5000 Blackwell", "Blackwell", (12, 0), 48, "RTX PRO 5000", "RTX PRO 5000 Blackwell-48G"),
    _nvidia("RTX PRO 4500 Blackwell", "Blackwell", (12, 0), 32, "RTX PRO 4500"),
    _nvidia("RTX PRO 4000 Blackwell", "Blackwell", (12, 0), 24, "RTX PRO 4000"),
    _nvidia("RTX 6000 Ada", "Ada", (8, 9), 48, "A6000 Ada"),
    _nvidia("RTX 5880 Ada", "Ada", (8, 9), 48, "RTX 5880"),
    _nvidia("RTX 5000 Ada", "Ada", (8, 9), 32),
    _nvidia("RTX 4500 Ada", "Ada", (8, 9), 24, "RTX 4500"),
    _nvidia("RTX 4000 Ada", "Ada", (8, 9), 20, "RTX 4000 SFF Ada"),
    _nvidia("RTX 2000 Ada", "Ada", (8, 9), 16),
    _nvidia("RTX A6000", "Ampere", (8, 6), 48, "A6000"),
    _nvidia("RTX A5500", "Ampere", (8, 6), 24, "A5500"),
    _nvidia("RTX A5000", "Ampere", (8, 6), 24, "A5000"),
    _nvidia("RTX A4500", "Ampere", (8, 6), 20, "A4500"),
    _nvidia("RTX A4000", "Ampere", (8, 6), 16, "A4000"),
    _nvidia("RTX A2000-12G", "Ampere", (8, 6), 12, "RTX A2000", "A2000"),
    _nvidia("RTX A2000-6G", "Ampere", (8, 6), 6, "RTX A2000", "A2000"),
    _nvidia("Quadro RTX 8000", "Turing", (7, 5), 48, "RTX 8000"),
    _nvidia("Quadro RTX 6000", "Turing", (7, 5), 24),
    _nvidia("Quadro RTX 5000", "Turing", (7, 5), 16),
    _nvidia("Quadro RTX 4000", "Turing", (7, 5), 8),
    _nvidia("Quadro GV100", "Volta", (7, 0), 32, "GV100"),
    _nvidia("Quadro GP100", "Pascal", (6, 0), 16, "GP100"),
    _nvidia("Quadro P6000", "Pascal", (6, 1), 24, "P6000"),
    _nvidia("Quadro P5000", "Pascal", (6, 1), 16, "P5000"),
    _nvidia("Titan RTX", "Turing", (7, 5), 24),
    _nvidia("Titan V", "Volta", (7, 0), 12),
    _nvidia("Titan Xp", "Pascal", (6, 1), 12),
    _nvidia("Titan X (Pascal)", "Pascal", (6, 1), 12),
)

_CONSUMER = (
    _geforce("RTX 5090", "Blackwell", (12, 0), 32, "RTX 5090 D"),
    _geforce("RTX 5080", "Blackwell", (12, 0), 16),
    _geforce("RTX 5070 Ti", "Blackwell", (12, 0), 16),
    _geforce("RTX 5070", "Blackwell", (12, 0), 12),
    _geforce("RTX 5060 Ti-16G", "Blackwell", (12, 0), 16, "RTX 5060 Ti", "5060 Ti"),
    _geforce("RTX 5060 Ti-8G", "Blackwell", (12, 0), 8, "RTX 5060 Ti", "5060 Ti"),
    _geforce("RTX 5060", "Blackwell", (12, 0), 8),
    _geforce("RTX 4090", "Ada", (8, 9), 24, "RTX 4090 D"),
    _geforce("RTX 4080 Super", "Ada", (8, 9), 16),
    _geforce("RTX 4080", "Ada", (8, 9), 16),
    _geforce("RTX 4070 Ti Super", "Ada", (8, 9), 16),
    _geforce("RTX 4070 Ti", "Ada", (8, 9), 12),
    _geforce("RTX 4070 Super", "Ada", (8, 9), 12),
    _geforce("RTX 4070", "Ada", (8, 9), 12),
    _geforce("RTX 4060 Ti-16G", "Ada", (8, 9), 16, "RTX 4060 Ti", "4060 Ti"),
    _geforce("RTX 4060 Ti-8G", "Ada", (8, 9), 8, "RTX 4060 Ti", "4060 Ti"),
    _geforce("RTX 4060", "Ada", (8, 9), 8),
    _geforce("RTX 3090 Ti", "Ampere", (8, 6), 24),
    _geforce("RTX 3090", "Ampere", (8, 6), 24),
    _geforce("RTX 3080 Ti", "Ampere", (8, 6), 12),
    _geforce("RTX 3080-12G", "Ampere", (8, 6), 12, "RTX 3080", "3080"),
    _geforce("RTX 3080-10G", "Ampere", (8, 6), 10, "RTX 3080", "3080"),
    _geforce("RTX 3070 Ti", "Ampere", (8, 6), 8),
    _geforce("RTX 3070", "Ampere", (8, 6), 8),
    _geforce("RTX 3060 Ti", "Ampere", (8, 6), 8),
    _geforce("RTX 3060-12G", "Ampere", (8, 6), 12, "RTX 3060", "3060"),
    _geforce("RTX 3060-8G", "Ampere", (8, 6), 8, "RTX 3060", "3060"),
    _geforce("RTX 3050", "Ampere", (8, 6), 8),
    _geforce("RTX 2080 Ti", "Turing", (7, 5), 11),
    _geforce("RTX 2080 Super", "Turing", (7, 5), 8),
    _geforce("RTX 2080", "Turing", (7, 5), 8),
    _geforce("RTX 2070 Super", "Turing", (7, 5), 8),
    _geforce("RTX 2070", "Turing", (7, 5), 8),
    _geforce("RTX 2060 Super", "Turing", (7, 5), 8),
    _geforce("RTX 2060-12G", "Turing", (7, 5), 12, "RTX 2060", "2060"),
    _geforce("RTX 2060-6G", "Turing", (7, 5), 6, "RTX 2060", "2060"),
    _geforce("GTX 1660 Ti", "Turing", (7, 5), 6),
    _geforce("GTX 1660 Super", "Turing", (7, 5), 6),
    _geforce("GTX 1660", "Turing", (7, 5), 6),
    _geforce("GTX 1650 Super", "Turing", (7, 5), 4),
    _geforce("GTX 1650", "Turing", (7, 5), 4),
    _geforce("GTX 1080 Ti", "Pascal", (6, 1), 11),
    _geforce("GTX 1080", "Pascal", (6, 1), 8),
    _geforce("GTX 1070 Ti", "Pascal", (6, 1), 8),
    _geforce("GTX 1070", "Pascal", (6, 1), 8),
    _geforce("GTX 1060-6G", "Pascal", (6, 1), 6, "GTX 1060", "1060"),
    _geforce("GTX 1060-3G", "Pascal", (6, 1), 3, "GTX 1060", "1060"),
    _geforce("GTX 1050 Ti", "Pascal", (6, 1), 4),
)

_AMD = (
    _instinct("MI355X", "CDNA 4", 288, fp8=True),
    _instinct("MI350X", "CDNA 4", 288, "MI350", fp8=True),
    _instinct("MI325X", "CDNA 3", 256, "MI325", fp8=True),
    _instinct("MI300X", "CDNA 3", 192, "MI300", fp8=True),
    _instinct("MI300A", "CDNA 3", 128, fp8=True),
    _instinct("MI250X", "CDNA 2", 64, "MI250X / MI250"),
    _instinct("MI250", "CDNA 2", 64),
    _instinct("MI210", "CDNA 2", 64),
    _instinct("MI100", "CDNA", 32),
)

GPUS: tuple[Gpu, ...] = _DATACENTRE + _WORKSTATION + _CONSUMER + _AMD

CLOUD_MACHINES: tuple[CloudMachine, ...] = (
    # Amazon EC2
    CloudMachine("p2.*", "K80"),
    CloudMachine("p3.*", "V100-16G"),
    CloudMachine("p3dn.*", "V100-32G"),
    CloudMachine("p4d.*", "A100-40G"),
    CloudMachine("p4de.*", "A100-80G"),
    CloudMachine("p5.*", "H100"),
    CloudMachine("p5e.*", "H200"),
    CloudMachine("p5en.*", "H200"),
    CloudMachine("p6-b200.*", "B200"),
    CloudMachine("p6-b300.*", "B300"),
    CloudMachine("p6e-gb200.*", "GB200"),
    CloudMachine("p6e-gb300.*", "GB300"),
    CloudMachine("g3.*", "M60"),
    CloudMachine("g3s.*", "M60"),
    CloudMachine("g4dn.*", "T4"),
    CloudMachine("g5.*", "A10G"),
    CloudMachine("g5g.*", "T4"),
    CloudMachine("g6.*", "L4"),
    CloudMachine("gr6.*", "L4"),
    CloudMachine("g6e.*", "L40S"),
    CloudMachine("g7e.*", "RTX PRO 6000 Blackwell"),
    # Google Cloud: machine types, and accelerator names that say less than they mean
    CloudMachine("a2-highgpu-*", "A100-40G"),
    CloudMachine("a2-megagpu-*", "A100-40G"),
    CloudMachine("a2-ultragpu-*", "A100-80G"),
    CloudMachine("a3-highgpu-*", "H100"),
    CloudMachine("a3-megagpu-*", "H100"),
    CloudMachine("a3-edgegpu-*", "H100"),
    CloudMachine("a3-ultragpu-*", "H200"),
    CloudMachine("a4-highgpu-*", "B200"),
    CloudMachine("a4x-highgpu-*", "GB200"),
    CloudMachine("a4x-maxgpu-*", "GB300"),
    CloudMachine("g2-standard-*", "L4"),
    CloudMachine("g4-standard-*", "RTX PRO 6000 Blackwell"),
    CloudMachine("nvidia-tesla-a100", "A100-40G"),
    CloudMachine("nvidia-tesla-v100", "V100-16G"),
    CloudMachine("nvidia-tesla-p100", "P100-16G"),
    # Azure, less the "Standard_" in front
    CloudMachine("nc*s_v2", "P100-16G"),
    CloudMachine("nc*s_v3", "V100-16G"),
    CloudMachine("nc*as_t4_v3", "T4"),
    CloudMachine("nc*_a100_v4", "A100-80G"),
    CloudMachine("nc*_h100_v5", "H100-NVL"),
    CloudMachine("nd*rs_v2", "V100-32G"),
    CloudMachine("nd*asr_v4", "A100-40G"),
    CloudMachine("nd*asr_a100_v4", "A100-40G"),
    CloudMachine("nd*amsr_a100_v4", "A100-80G"),
    CloudMachine("nd*_h100_v5", "H100"),
    CloudMachine("nd*_h200_v5", "H200"),
    CloudMachine("nd*_gb200_v6", "GB200"),
    CloudMachine("nd*_gb300_v6", "GB300"),
    CloudMachine("nd*_mi300x_v5", "MI300X"),
    CloudMachine("nv*s_v3", "M60"),
    # Oracle Cloud
    CloudMachine("bm.gpu2.*", "P100-16G"),
    CloudMachine("?m.gpu3.*", "V100-16G"),
    CloudMachine("bm.gpu4.8", "A100-40G"),
    CloudMachine("bm.gpu.a100-v2.*", "A100-80G"),
    CloudMachine("?m.gpu.a10.*", "A10"),
    CloudMachine("bm.gpu.l40s.*", "L40S"),
    CloudMachine("bm.gpu.h100.*", "H100"),
    CloudMachine("bm.gpu.h200.*", "H200"),
    CloudMachine("bm.gpu.b200.*", "B200"),
    CloudMachine("bm.gpu.mi300x.*", "MI300X"),
)
